//! A Function with what its forward left behind: the step of its node.

use core::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::Function;
use super::context::{Context, Saved};
use crate::autograd::{BackwardCall, BackwardStep, Gradients, SavedTensor};
use crate::engine::Engine;
use crate::error::Result;

/// The tensors of a node, until a backward frees them.
pub(super) type SavedTensors<E> = Option<SmallVec<[SavedTensor<E>; 2]>>;

/// The backward half of an applied Function.
pub(super) struct Recorded<E: Engine, F> {
    pub(super) function: F,
    pub(super) saved: Mutex<SavedTensors<E>>,
    pub(super) stored: Option<Arc<dyn Any + Send + Sync>>,
    pub(super) materialize_grads: bool,
}

impl<E: Engine, F: Function<E>> Recorded<E, F> {
    /// The context for one backward.
    fn context(&self, call: &BackwardCall<'_, E>) -> Result<Context<E>> {
        let inputs = 0..call.node.next_edges().len();
        let needs_input_grad = inputs.map(|position| call.needs_input_grad(position)).collect();
        let mut ctx = Context::new(self.function.name(), needs_input_grad);
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        ctx.saved = match &*saved {
            Some(tensors) => {
                Saved::Kept(tensors.iter().map(|tensor| tensor.unpack(call.node)).collect::<Result<_>>()?)
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

impl<E: Engine, F: Function<E>> BackwardStep<E> for Recorded<E, F> {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn backward(&self, call: &BackwardCall<'_, E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        let ctx = self.context(call)?;
        let returned = self.function.backward(&ctx, grads)?;
        if !call.retain_graph {
            self.free();
        }
        Ok(returned)
    }

    fn materializes_grads(&self) -> bool {
        self.materialize_grads
    }

    fn is_user_code(&self) -> bool {
        !self.function.is_built_in()
    }
}
