// A backward in the wrong trait.
use gradpact::prelude::*;

#[autograd_function(out = f16, backward = none)]
struct Silu;

impl ForwardOnly for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> { Ok(grad) }
}

fn main() {}
