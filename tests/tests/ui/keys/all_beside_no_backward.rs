// Everything about a backward that does not exist.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = none, policy = strict, materialize = false, once, backward = none)]
struct Silu;

impl ForwardOnly for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
}

fn main() {}
