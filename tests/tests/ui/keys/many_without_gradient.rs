// Several keys that have no effect.
use gradpact::prelude::*;

#[autograd_function(out = bool, policy = strict, materialize = false, once)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<bool>> { x.cast() }
    fn backward(&self, _: &Context, (): ()) -> Result<Value<f32>> { unimplemented!() }
}

fn main() {}
