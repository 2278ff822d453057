// A contract without a formula.
use gradpact::prelude::*;

#[autograd_function(out = f16, backward = none)]
struct Silu;

fn model(x: &Tensor<f32>) -> Result<Tensor<f16, NoGrad>> { Silu.apply(x) }

fn main() {}
