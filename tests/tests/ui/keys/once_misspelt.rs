// A slip in the name of a flag.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32, onec)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> { Ok(grad) }
}

fn main() {}
