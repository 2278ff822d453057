// The attribute on the formula instead of the struct.
use gradpact::prelude::*;

struct Silu;

#[autograd_function(out = f16, backward = none)]
impl ForwardOnly for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
}

fn model(x: &Tensor<f32>) -> Result<Tensor<f16, NoGrad>> { Silu.apply(x) }

fn main() {}
