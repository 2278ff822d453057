// Two mistakes: each kind of formulas for the other contract.
use gradpact::prelude::*;

#[autograd_function(out = f16, backward = none)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, (): ()) -> Result<Value<f32>> { unimplemented!() }
}

#[autograd_function(out = bf16)]
struct Scale;

impl ForwardOnly for Scale {
    type Inputs = Tensor<f32>;
    fn forward(&self, x: Value<f32>) -> Result<Value<bf16>> { x.cast() }
}

fn main() {}
