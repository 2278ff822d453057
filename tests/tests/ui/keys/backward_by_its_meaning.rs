// Another word for the key.
use gradpact::prelude::*;

#[autograd_function(out = f16, differentiable = false)]
struct Silu;

impl ForwardOnly for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
}

fn main() {}
