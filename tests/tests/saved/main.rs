//! What happens to saved tensors between forward and backward: hooks that pack them, and checkpoints that recompute them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod checkpoint;
mod hooks;

use gradpact::prelude::*;

/// The elements as `f64`s.
fn values(tensor: &DynTensor) -> Vec<f64> {
    tensor.to_f64_vec().unwrap()
}

/// A tracked tensor.
fn leaf(dtype: DType, values: &[f64]) -> DynTensor {
    DynTensor::from_slice(values, [values.len()]).unwrap().cast(dtype).unwrap().requiring_grad().unwrap()
}

/// Stored in f16, gradient declared in f32; `x²` whose backward checks what it receives.
#[autograd_function(out = f16, grad = f32)]
#[derive(Clone)]
struct Square;

impl Op for Square {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.mul(&x)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        grad.mul(&x)?.mul_scalar(2.0)
    }
}
