// A function takes a tensor whose gradient arrives in f16, and is given one with f32.
use gradpact::prelude::*;

fn head(x: &Tensor<f16>) -> Result<Tensor<f16>> { Ok(x.clone()) }

fn body(x: &Tensor<f16, f32>) -> Result<Tensor<f16>> { head(x) }

fn main() {}
