// Two structs without a contract, one of them with formulas.
use gradpact::prelude::*;

struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> { Ok(grad) }
}

struct Scale;

fn describe(_: impl Op) {}

fn main() { describe(Scale) }
