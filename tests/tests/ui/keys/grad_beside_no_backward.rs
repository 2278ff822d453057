// A gradient dtype where there is no gradient.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32, backward = none)]
struct Silu;

impl ForwardOnly for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
}

fn main() {}
