// A contract without formulas.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

fn model(x: &Tensor<f32>) -> Result<Tensor<f16, f32>> { Silu.apply(x) }

fn main() {}
