//! A Function with what its forward left behind: the step of its node.

use core::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use super::Function;
use super::context::{Context, Needs, Saved};
use crate::autograd::grad_mode::{self, GradModeGuard};
use crate::autograd::{
    BackwardCall, BackwardStep, DynTensor, Gradients, SavedInfo, SavedTensor, autocast_dtype,
    differentiable_once, enter_region,
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
    /// `None` once a backward has freed them.
    saved: Mutex<Option<List<SavedTensor<E>>>>,
    stored: Option<Arc<dyn Any + Send + Sync>>,
    materialize_grads: bool,
    once: bool,
    /// The [`autocast`](crate::autocast) region of the forward.
    autocast: Option<DType>,
}

impl<E: Engine> Kept<E> {
    /// Files what a forward with these outputs has saved.
    ///
    /// # Errors
    /// Those of hooks that pack it.
    pub(super) fn new(
        ctx: Context<E>,
        outputs: &[DynTensor<E>],
        differentiable: &dyn Fn(usize) -> bool,
    ) -> Result<Self> {
        let function = ctx.function;
        let saved = match ctx.saved {
            Saved::Kept(tensors) => {
                let file = |_, tensor| SavedTensor::new(function, tensor, outputs, differentiable);
                Some(tensors.try_map(file)?)
            }
            Saved::Freed => None,
        };
        Ok(Self {
            saved: Mutex::new(saved),
            stored: ctx.stored,
            materialize_grads: ctx.materialize_grads,
            once: ctx.once,
            autocast: autocast_dtype(),
        })
    }

    /// The context for one backward.
    fn context(&self, function: &'static str, call: &BackwardCall<'_, E>) -> Result<Context<E>> {
        let inputs = call.node.next_edges().len();
        let needs_input_grad = Needs::of(inputs, |position| call.needs_input_grad(position));
        let mut ctx = Context::new(function, needs_input_grad);
        // Unpacked outside the lock: that may make a node, and so run hooks of the user's.
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ctx.saved = match saved {
            Some(tensors) => {
                Saved::Kept(tensors.try_map(|position, tensor| tensor.unpack(call.node, position))?)
            }
            None => Saved::Freed,
        };
        ctx.stored.clone_from(&self.stored);
        Ok(ctx)
    }

    /// Frees the saved tensors. A Function that saved none can be run again.
    fn free(&self) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let freed = saved.take_if(|tensors| !tensors.is_empty());
        drop(saved);
        // Outside the lock: what hangs on them may be large.
        drop(freed);
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
        let ctx = self.kept.context(self.function.name(), call)?;
        let _region = enter_region(self.kept.autocast);
        let returned = if self.kept.once && grad_mode::is_enabled() {
            unrecorded(&self.function, &ctx, grads)?
        } else {
            self.function.backward(&ctx, grads)?
        };
        if !call.retain_graph {
            self.kept.free();
        }
        Ok(returned)
    }

    fn materializes_grads(&self) -> bool {
        self.kept.materialize_grads
    }

    fn saved_tensors(&self) -> Vec<SavedInfo> {
        let saved = self.kept.saved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        saved.into_iter().flatten().map(|tensor| tensor.describe()).collect()
    }

    fn is_user_code(&self) -> bool {
        !self.function.is_built_in()
    }
}
