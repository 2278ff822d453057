// The name of the call in PyTorch.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32, materialize_grads = false)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Option<Value<f32>>) -> Result<Value<f32>> { Ok(grad.unwrap()) }
}

fn main() {}
