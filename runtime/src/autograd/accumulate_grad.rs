//! The node at a leaf: it adds what arrives to the leaf's gradient.

use core::fmt;

use super::admission::{Sender, refused};
use super::edge::{Edge, Origin};
use super::grad_cell::GradCell;
use super::graph_task::guarded;
use super::metadata::InputMetadata;
use super::node::{BackwardCall, BackwardStep, Node, NodeRef};
use super::tensor::{DynTensor, Gradients};
use crate::contract::{GradContract, Policy, Source, admit};
use crate::engine::{Array, Engine};
use crate::error::{Error, Result};
use crate::list::List;

/// The sink that holds a leaf's gradient.
pub struct AccumulateGrad<E: Engine> {
    /// The leaf's values, so that hooks can be given the leaf.
    array: E::Array,
    grad: GradCell<E>,
}

impl<E: Engine> AccumulateGrad<E> {
    pub(super) fn record(array: &E::Array, contract: GradContract) -> Result<NodeRef<E>> {
        let metadata = InputMetadata::new(array.shape().clone(), array.dtype(), contract);
        Node::record(Self { array: array.clone(), grad: GradCell::new() }, List::new(), metadata.alone())
    }

    /// The sink of a leaf that takes the place of the one at `before`, whose contract and hooks it keeps.
    pub(super) fn following(before: &NodeRef<E>, array: &E::Array) -> NodeRef<E> {
        let contract = before.inputs()[0].contract();
        let metadata = InputMetadata::new(array.shape().clone(), array.dtype(), contract);
        let step = Self { array: array.clone(), grad: GradCell::new() };
        Node::with_hooks(step, List::new(), metadata.alone(), before.shared_hooks())
    }

    /// The gradient so far.
    pub(crate) fn grad(&self) -> Option<DynTensor<E>> {
        self.grad.get()
    }

    /// Replaces the gradient.
    pub(crate) fn set_grad(&self, grad: Option<DynTensor<E>>) {
        self.grad.set(grad);
    }

    /// Replaces the gradient by one that has the shape and the dtype that are expected of it.
    pub(crate) fn assign_grad(&self, metadata: &InputMetadata, grad: &DynTensor<E>) -> Result<()> {
        let check = || {
            let contract = GradContract { policy: Policy::Strict, ..metadata.contract() };
            admit(metadata.shape(), contract, grad.shape(), grad.dtype())
        };
        let refuse = |refusal| refused(Sender::Assigned, metadata, "a leaf".to_owned(), grad, refusal);
        self.grad.set_checked(grad.clone(), check).map_err(refuse)
    }

    /// Changes in which dtype gradients are kept from now on; `.grad` must have it already, if there is one.
    pub(crate) fn set_grad_dtype(&self, metadata: &InputMetadata, contract: GradContract) -> Result<()> {
        self.grad.changing(|grad| {
            if let (Some(requested), Some(grad)) = (contract.grad_dtype.dtype(), grad)
                && grad.dtype() != requested
            {
                return Err(Error::GradPresent { requested, present: grad.dtype() });
            }
            let before = metadata.contract();
            metadata.set_contract(contract);
            Ok(before.grad_dtype != contract.grad_dtype)
        })
    }
}

impl<E: Engine> fmt::Debug for AccumulateGrad<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccumulateGrad").field("grad", &self.grad()).finish()
    }
}

/// A hook may have changed the leaf's gradient dtype since the gradient was admitted; under the strict policy of the call it is not
/// converted to one that nobody declared.
fn still_admissible<E: Engine>(call: &BackwardCall<'_, E>, grad: &DynTensor<E>) -> Result<()> {
    let metadata = &call.node.inputs()[0];
    let contract = metadata.contract();
    if call.policy == Policy::Cast || contract.source == Source::Declared {
        return Ok(());
    }
    let contract = GradContract { policy: call.policy, ..contract };
    match admit(metadata.shape(), contract, grad.shape(), grad.dtype()) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(refused(Sender::Waiting, metadata, "a leaf".to_owned(), grad, refusal)),
    }
}

impl<E: Engine> BackwardStep<E> for AccumulateGrad<E> {
    fn name(&self) -> &'static str {
        "AccumulateGrad"
    }

    fn backward(&self, call: &BackwardCall<'_, E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        for grad in grads.into_iter().flatten() {
            still_admissible(call, &grad)?;
            self.grad.add(&grad, || call.node.inputs()[0].contract().grad_dtype)?;
            if let Some(hooks) = call.node.existing_hooks() {
                let edge = Edge::new(NodeRef::clone(call.node), 0);
                let leaf = DynTensor::with_origin(self.array.clone(), Origin::Edge(edge));
                guarded(call.node.name(), || hooks.run_leaf(&leaf))?;
            }
        }
        Ok(Gradients::new())
    }

    fn materializes_grads(&self) -> bool {
        false
    }

    fn is_user_code(&self) -> bool {
        false
    }

    fn as_leaf(&self) -> Option<&Self> {
        Some(self)
    }
}
