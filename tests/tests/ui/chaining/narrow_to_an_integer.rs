// A gradient narrowed to an integer.
use gradpact::prelude::*;

fn model(x: &Tensor<f32>) -> Result<()> { x.narrow_grad::<i32>()?; Ok(()) }

fn main() {}
