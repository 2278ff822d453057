//! For crates in which another framework's graph records Functions: the two halves of a call, without a graph.
//!
//! The host runs [`forward`] where its users apply a Function, makes a node of its own from what that leaves, and runs
//! [`backward`] when its engine comes to the node. What is between the two (edges, accumulation, conversion to the declared
//! dtype) is the host's; what must hold is in [`contract`](crate::contract).

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use super::apply::run_forward;
use super::context::{Context, Positions, Saved};
use super::{Function, GivenInputs};
pub use crate::autograd::drop_in_turn;
use crate::autograd::graph_task::check_count;
use crate::autograd::{DynTensor, Gradients, Origin, Outputs, autocast_dtype, enter_region};
use crate::contract::{GradContract, GradDType};
use crate::dtype::DType;
use crate::engine::Engine;
#[cfg(doc)]
use crate::error::Error;
use crate::error::{Phase, Result};
use crate::list::List;

/// What a forward leaves.
pub struct Forward<E: Engine> {
    /// One tensor for each output.
    pub outputs: Outputs<E>,
    /// The contract of each output; `None` where it has no gradient.
    pub contracts: List<Option<GradContract>>,
    /// What was saved for backward, in order; `None` for an optional input that was not given.
    pub saved: List<Option<DynTensor<E>>>,
    /// The rest of what backward needs.
    pub kept: Kept,
}

/// What a node keeps of its forward beside the saved tensors.
#[derive(Clone)]
pub struct Kept {
    stored: Option<Arc<dyn Any + Send + Sync>>,
    materialize_grads: bool,
    once: bool,
    autocast: Option<DType>,
}

impl Kept {
    /// Whether an output that nobody used gets zeros in backward, of the declared dtype, or `None`.
    pub fn materializes_grads(&self) -> bool {
        self.materialize_grads
    }

    /// Whether backward is differentiable itself: if not, the host runs it unrecorded, and a derivative of its results is
    /// [`Error::DifferentiableOnce`].
    pub fn is_once_differentiable(&self) -> bool {
        self.once
    }
}

/// Runs the forward of `function` and checks what it declared.
///
/// `needs_input_grad` says for which inputs a gradient will be wanted: none, if the call is not recorded. `grad_dtype` is what
/// the host's graph knows of an input's gradient, `None` if it has none.
///
/// # Errors
/// What forward reports, with the Function's name; a panic in it; and every mistake in what it declared.
pub fn forward<E: Engine>(
    function: &dyn Function<E>,
    inputs: &GivenInputs<'_, E>,
    needs_input_grad: impl Fn(usize) -> bool,
    grad_dtype: impl Fn(usize) -> Option<GradDType>,
) -> Result<Forward<E>> {
    let name = function.name();
    let mut ctx = Context::new(name, Positions::among(inputs.len(), needs_input_grad));
    let outputs = run_forward(function, &mut ctx, inputs)?;
    let carried = (0..inputs.len()).filter_map(&grad_dtype);
    let contracts = ctx.declarations.contracts(name, &outputs, &carried)?;
    let saved = match ctx.saved {
        Saved::Kept(tensors) => {
            let given = |tensor: DynTensor<E>| (!matches!(tensor.origin(), Origin::Absent)).then_some(tensor);
            tensors.into_iter().map(given).collect()
        }
        Saved::Freed => List::new(),
    };
    let (stored, materialize_grads, once) = (ctx.stored, ctx.materialize_grads, ctx.once);
    let kept = Kept { stored, materialize_grads, once, autocast: autocast_dtype() };
    Ok(Forward { outputs, contracts, saved, kept })
}

/// Runs the backward of `function`, which was applied to `inputs` inputs, and checks how many gradients it returns.
///
/// `saved` is what [`Forward::saved`] was; `None` after an earlier backward has freed it. Each gradient must have the dtype of
/// its contract. A panic passes through.
///
/// # Errors
/// What backward reports, with the Function's name, and [`Error::GradientCount`].
pub fn backward<E: Engine>(
    function: &dyn Function<E>,
    kept: &Kept,
    inputs: usize,
    needs_input_grad: impl Fn(usize) -> bool,
    saved: Option<List<Option<DynTensor<E>>>>,
    grads: Gradients<E>,
) -> Result<Gradients<E>> {
    let name = function.name();
    let mut ctx = Context::new(name, Positions::among(inputs, needs_input_grad));
    ctx.saved = match saved {
        Some(tensors) => Saved::Kept(tensors.try_map(|_, tensor| tensor.map_or_else(DynTensor::absent, Ok))?),
        None => Saved::Freed,
    };
    ctx.stored.clone_from(&kept.stored);
    let _region = enter_region(kept.autocast);
    let returned = function.backward(&ctx, grads);
    let mut returned = returned.map_err(|error| error.inside(name, Phase::Backward))?;
    check_count(name, inputs, &mut returned)?;
    Ok(returned)
}

impl<E: Engine> fmt::Debug for Forward<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outputs, contracts, saved, kept } = self;
        let mut f = f.debug_struct("Forward");
        f.field("outputs", outputs).field("contracts", contracts).field("saved", saved);
        f.field("kept", kept).finish()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("stored", &self.stored.is_some())
            .field("materialize_grads", &self.materialize_grads)
            .field("once", &self.once)
            .finish_non_exhaustive()
    }
}
