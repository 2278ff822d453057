// A gradient in the type of the result.
use gradpact::prelude::*;

#[autograd_function(out = f16, backward = none)]
struct Silu;

impl ForwardOnly for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
}

fn model(x: &Tensor<f32>) -> Result<Tensor<f16>> { Silu.apply(x) }

fn main() {}
