// A gradient is taken to be optional, which it is not.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Option<Value<f32>>) -> Result<Value<f32>> { Ok(grad.unwrap()) }
}

fn main() {}
