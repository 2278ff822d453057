// Strict about gradients that do not exist.
use gradpact::prelude::*;

#[autograd_function(out = i64, policy = strict)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<i64>> { x.cast() }
    fn backward(&self, _: &Context, (): ()) -> Result<Value<f32>> { unimplemented!() }
}

fn main() {}
