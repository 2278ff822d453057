//! A Function with what its forward left behind: the step of its node.

use core::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::Function;
use super::context::{Context, Positions, Saved};
use crate::autograd::grad_mode::{self, GradModeGuard};
use crate::autograd::{
    BackwardCall, BackwardStep, Cut, DynTensor, Gradients, Origin, SavedInfo, SavedTensor, autocast_dtype,
    differentiable_once, enter_region, saved_hooks_are_active,
};
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::Result;
use crate::list::List;

/// The backward half of an applied Function.
pub(super) struct Recorded<E: Engine, F> {
    pub(super) function: F,
    pub(super) kept: Kept<E>,
}

/// What a node keeps of the context of its forward.
pub(super) struct Kept<E: Engine> {
    saved: Mutex<Filed<E>>,
    stored: Option<Arc<dyn Any + Send + Sync>>,
    materialize_grads: bool,
    once: bool,
    /// The [`autocast`](crate::autocast) region of the forward.
    autocast: Option<DType>,
}

/// What became of the tensors that a forward saved.
#[derive(Clone)]
enum Filed<E: Engine> {
    /// Inputs and constants, as they were saved: lent to a backward and taken back without a copy.
    Plain(List<DynTensor<E>>),
    /// Among them outputs, intermediates, or what hooks packed.
    Each(List<SavedTensor<E>>),
    /// A backward has freed them, or is about to.
    Freed,
}

impl<E: Engine> Kept<E> {
    /// Keeps what the context of a forward with these outputs holds.
    ///
    /// # Errors
    /// Those of hooks that pack what it has saved.
    #[inline]
    pub(super) fn new(
        ctx: &mut Context<E>,
        outputs: &[DynTensor<E>],
        differentiable: &Positions,
    ) -> Result<Self> {
        Ok(Self {
            saved: Mutex::new(Filed::new(ctx, outputs, differentiable)?),
            stored: ctx.stored.take(),
            materialize_grads: ctx.materialize_grads,
            once: ctx.once,
            autocast: autocast_dtype(),
        })
    }

    /// Frees the saved tensors. A Function that saved none can be run again.
    fn free(&self) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let freed = match &*saved {
            Filed::Each(_) => core::mem::replace(&mut *saved, Filed::Freed),
            Filed::Plain(_) | Filed::Freed => return,
        };
        drop(saved);
        // Outside the lock: what hangs on them may be large.
        drop(freed);
    }
}

impl<E: Engine> Filed<E> {
    fn new(ctx: &mut Context<E>, outputs: &[DynTensor<E>], differentiable: &Positions) -> Result<Self> {
        let Saved::Kept(tensors) = &mut ctx.saved else { return Ok(Self::Freed) };
        let tensors = core::mem::take(tensors);
        let is_plain = |tensor: &DynTensor<E>| !matches!(tensor.origin(), Origin::Cut(Cut::InForward(_)));
        if tensors.iter().all(is_plain) && !saved_hooks_are_active() {
            return Ok(Self::Plain(tensors));
        }
        let differentiable = |position| differentiable.contains(position);
        let file = |_, tensor| SavedTensor::new(ctx.function, tensor, outputs, &differentiable);
        tensors.try_map(file).map(Self::Each)
    }
}

/// The context of a backward that runs. If that fails, by a panic too, the node has its saved tensors again.
struct Opened<'a, E: Engine> {
    kept: &'a Kept<E>,
    ctx: Context<E>,
    /// Whether the saved tensors are the node's own, lent.
    is_lent: bool,
}

impl<'a, E: Engine> Opened<'a, E> {
    fn new(kept: &'a Kept<E>, function: &'static str, call: &BackwardCall<'_, E>) -> Self {
        let inputs = call.node.next_edges().len();
        let needs_input_grad = Positions::among(inputs, |position| call.needs_input_grad(position));
        let mut ctx = Context::new(function, needs_input_grad);
        ctx.stored.clone_from(&kept.stored);
        Self { kept, ctx, is_lent: false }
    }

    /// Puts what was saved into the context: lent, if nobody needs it afterwards, else a copy.
    ///
    /// # Errors
    /// Those of hooks that unpack it.
    fn fill(&mut self, call: &BackwardCall<'_, E>) -> Result<()> {
        let mut filed = self.kept.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let each = match &mut *filed {
            Filed::Plain(tensors) if call.retain_graph || tensors.is_empty() => {
                self.ctx.saved = Saved::Kept(tensors.clone());
                return Ok(());
            }
            Filed::Plain(tensors) => {
                self.ctx.saved = Saved::Kept(core::mem::take(tensors));
                *filed = Filed::Freed;
                self.is_lent = true;
                return Ok(());
            }
            Filed::Each(tensors) => tensors.clone(),
            Filed::Freed => {
                self.ctx.saved = Saved::Freed;
                return Ok(());
            }
        };
        // Outside the lock: unpacking may make a node, and so run hooks of the user's.
        drop(filed);
        let unpack = |position, tensor: SavedTensor<E>| tensor.unpack(call.node, position);
        self.ctx.saved = Saved::Kept(each.try_map(unpack)?);
        Ok(())
    }

    /// The backward has succeeded: what was saved is freed, unless the graph is to be kept.
    fn succeeded(&mut self, retain_graph: bool) {
        if !core::mem::take(&mut self.is_lent) && !retain_graph {
            self.kept.free();
        }
    }
}

impl<E: Engine> Drop for Opened<'_, E> {
    fn drop(&mut self) {
        if self.is_lent
            && let Saved::Kept(tensors) = core::mem::replace(&mut self.ctx.saved, Saved::Freed)
        {
            *self.kept.saved.lock().unwrap_or_else(PoisonError::into_inner) = Filed::Plain(tensors);
        }
    }
}

/// The backward of a Function that is differentiable once, in a backward call that is recorded.
fn unrecorded<E: Engine>(
    function: &dyn Function<E>,
    ctx: &Context<E>,
    grads: Gradients<E>,
) -> Result<Gradients<E>> {
    let saved = ctx.saved_tensors().unwrap_or_default();
    let used = grads.iter().flatten().chain(saved).map(|tensor| tensor.origin().clone()).collect();
    let _mode = GradModeGuard::disable();
    let returned = function.backward(ctx, grads)?;
    differentiable_once(function.name(), used, returned)
}

impl<E: Engine, F: Function<E>> BackwardStep<E> for Recorded<E, F> {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn backward(&self, call: &BackwardCall<'_, E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        let mut opened = Opened::new(&self.kept, self.function.name(), call);
        opened.fill(call)?;
        let _region = enter_region(self.kept.autocast);
        let returned = if self.kept.once && grad_mode::is_enabled() {
            unrecorded(&self.function, &opened.ctx, grads)
        } else {
            self.function.backward(&opened.ctx, grads)
        };
        if returned.is_ok() {
            opened.succeeded(call.retain_graph);
        }
        returned
    }

    fn materializes_grads(&self) -> bool {
        self.kept.materialize_grads
    }

    fn saved_tensors(&self) -> Vec<SavedInfo> {
        match &*self.kept.saved.lock().unwrap_or_else(PoisonError::into_inner) {
            Filed::Plain(tensors) => tensors.iter().map(SavedInfo::of).collect(),
            Filed::Each(tensors) => tensors.iter().map(SavedTensor::describe).collect(),
            Filed::Freed => Vec::new(),
        }
    }

    fn is_user_code(&self) -> bool {
        !self.function.is_built_in()
    }
}
