// Neither a contract nor formulas.
use gradpact::prelude::*;

struct Silu;

fn model(x: &Tensor<f32>) -> Result<Tensor<f16, f32>> { Silu.apply(x) }

fn main() {}
