// Several mistakes: words, a value of a flag, a repeated key, nothing to be strict about.
use gradpact::prelude::*;

#[autograd_function(out = bool, grad = none, policy = strict, materialize = 0, once = true, backward = some, policy = cast)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<bool>> { x.cast() }
    fn backward(&self, _: &Context, (): ()) -> Result<Value<f32>> { unimplemented!() }
}

fn main() {}
