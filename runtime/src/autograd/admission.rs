//! Where every gradient is admitted to the edge it is about to travel along. The contract is enforced here and
//! nowhere else: once per edge, by the sender, before accumulation and before hooks.

use super::edge::Edge;
use super::metadata::InputMetadata;
use super::node::Node;
use super::tensor::DynTensor;
use crate::contract::{Admission, GradContract, Policy, Refusal, Source, admit};
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::{Error, GradientMismatch, GradientSender, Place, Result};
use crate::observe::{self, Admitted};

/// Who sends a gradient.
#[derive(Clone, Copy)]
pub(super) enum Sender<'a, E: Engine> {
    /// The backward of a node, as the gradient of one of its forward's inputs.
    Node(&'a Node<E>, usize),
    /// The caller, as a seed.
    Seed,
    /// The caller, as the gradient of a leaf.
    Assigned,
    /// Whoever it was, it had been admitted, and the receiver's gradient dtype has changed since.
    Waiting,
}

impl<E: Engine> Sender<'_, E> {
    fn described(&self) -> GradientSender {
        match self {
            Self::Node(node, position) => GradientSender::Backward(Place::input(node.name(), *position)),
            Self::Seed => GradientSender::Seed,
            Self::Assigned => GradientSender::Assigned,
            Self::Waiting => GradientSender::Waiting,
        }
    }
}

/// Admits `grad` to `edge`: it is checked, and converted to the gradient dtype of the tensor at its end.
///
/// Under the strict policy of a backward call only a dtype that somebody declared is converted to. `call` is the number of a
/// call that is observed.
pub(super) fn admit_gradient<E: Engine>(
    policy: Policy,
    sender: Sender<'_, E>,
    edge: &Edge<E>,
    grad: &mut DynTensor<E>,
    call: Option<u64>,
) -> Result<()> {
    let metadata = edge.metadata();
    let mut contract = metadata.contract();
    if contract.source != Source::Declared {
        contract.policy = contract.policy.max(policy);
    }
    let decision = admit(metadata.shape(), contract, grad.shape(), grad.dtype());
    if observe::is_told(call) {
        *grad = admit_observed(call, sender, edge, contract, decision, grad)?;
        return Ok(());
    }
    match decision {
        Ok(Admission::AsIs) => {}
        Ok(Admission::Convert(dtype)) => *grad = grad.cast(dtype)?,
        Err(refusal) => {
            return Err(refused(sender, metadata, edge.node().describe(edge.input_nr), grad, refusal));
        }
    }
    Ok(())
}

/// What [`admit_gradient`] does, told to whoever observes.
#[cold]
fn admit_observed<E: Engine>(
    call: Option<u64>,
    sender: Sender<'_, E>,
    edge: &Edge<E>,
    contract: GradContract,
    decision: Result<Admission, Refusal>,
    grad: &DynTensor<E>,
) -> Result<DynTensor<E>> {
    let metadata = edge.metadata();
    let admitted = match decision {
        Ok(Admission::AsIs) => grad.cast_counting(grad.dtype()),
        Ok(Admission::Convert(dtype)) => grad.cast_counting(dtype),
        Err(refusal) => Err(refused(sender, metadata, edge.node().describe(edge.input_nr), grad, refusal)),
    };
    let outcome = admitted.as_ref().map(|(grad, census)| (grad.dtype(), *census));
    observe::admitted(&Admitted {
        call,
        sender: match sender {
            Sender::Node(node, position) => Some((node.info(), position)),
            Sender::Seed | Sender::Assigned | Sender::Waiting => None,
        },
        receiver: edge.node().info(),
        position: edge.input_nr,
        shape: metadata.shape(),
        storage: metadata.dtype(),
        contract,
        arrived: grad.dtype(),
        outcome,
    });
    Ok(admitted?.0)
}

/// The error of a gradient that `receiver`, of this metadata, does not take.
#[cold]
pub(super) fn refused<E: Engine>(
    sender: Sender<'_, E>,
    metadata: &InputMetadata,
    receiver: String,
    grad: &DynTensor<E>,
    refusal: Refusal,
) -> Error {
    let (sender, got) = (sender.described(), grad.dtype());
    let expecting = |dtype: Option<DType>| dtype.map(|expected| (expected, got));
    let (shape, dtype) = match refusal {
        Refusal::NotFloat => return Error::GradientNotFloat { sender: Box::new(sender), got },
        Refusal::Shape { dtype } => {
            (Some((metadata.shape().clone(), grad.shape().clone())), expecting(dtype))
        }
        Refusal::DType(expected) => (None, expecting(Some(expected))),
    };
    Error::Gradient(Box::new(GradientMismatch { sender, receiver, shape, dtype }))
}
