//! A Function around the checked one, that notes what its backward receives and returns. The engine needs no hook for it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::dtype::DType;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};
use crate::shape::Shape;

/// Dtype and shape of a gradient, by position; `None` where there was none.
pub(super) type Seen = Vec<Option<(DType, Shape)>>;

/// What one call of a backward received and returned.
pub(super) struct Call {
    pub(super) received: Seen,
    /// `None` if it ended in an error.
    pub(super) returned: Option<Seen>,
    /// Which inputs it was asked for.
    pub(super) needed: Vec<bool>,
}

/// The calls of a Function's backward so far.
#[derive(Default)]
pub(super) struct Log(Mutex<Vec<Call>>);

impl Log {
    /// The calls since the last time, oldest first.
    pub(super) fn take(&self) -> Vec<Call> {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}

/// The checked Function, under observation.
pub(super) struct Observed<F> {
    pub(super) function: Arc<F>,
    pub(super) log: Arc<Log>,
    /// How many inputs it is applied to.
    pub(super) inputs: usize,
}

impl<F: Function> Function for Observed<F> {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        self.function.forward(ctx, inputs)
    }

    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
        let received = seen(&grads);
        let needed = (0..self.inputs).map(|position| ctx.needs_input_grad(position)).collect();
        let result = self.function.backward(ctx, grads);
        let returned = result.as_ref().ok().map(|returned| seen(returned));
        self.log.push(Call { received, returned, needed });
        result
    }

    fn is_built_in(&self) -> bool {
        self.function.is_built_in()
    }
}

fn seen(grads: &[Option<DynTensor>]) -> Seen {
    let describe = |grad: &DynTensor| (grad.dtype(), grad.shape().clone());
    grads.iter().map(|grad| grad.as_ref().map(describe)).collect()
}
