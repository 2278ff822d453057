// Formulas as of a Function with a backward, which is missing.
use gradpact::prelude::*;

#[autograd_function(out = f16, backward = none)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
}

fn main() {}
