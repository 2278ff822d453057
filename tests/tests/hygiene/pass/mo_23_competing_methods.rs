//! Every type has methods with the names of those that the expansion calls.

#![allow(dead_code)]

use gradpact::{Context, Op, Result, Tensor, Value, autograd_function, f16};

trait Everything {
    fn name(&self) -> u8 {
        0
    }
    fn apply(&self) {}
    fn forward(&self) {}
    fn backward(&self) {}
    fn dtype(&self) {}
    fn set_output_grad_dtype(&mut self, _: &[u8]) {}
    fn mark_non_differentiable(&mut self) {}
}

impl<T: ?Sized> Everything for T {}

#[autograd_function(out = (f16, f16), grad = (f32, none))]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<(Value<f16>, Value<f16>)> {
        Ok((x.cast()?, x.cast()?))
    }

    fn backward(&self, _: &Context, (grad, ()): (Value<f32>, ())) -> Result<Value<f32>> {
        Ok(grad)
    }
}

fn main() {}
