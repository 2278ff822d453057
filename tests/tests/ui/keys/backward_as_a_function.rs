// The name of a function that computes it.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32, backward = silu_backward)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> { Ok(grad) }
}

fn main() {}
