// `widen_grad` does not narrow.
use gradpact::prelude::*;

fn model(x: &Tensor<f32>) -> Result<Tensor<f32, f16>> { x.widen_grad() }

fn main() {}
