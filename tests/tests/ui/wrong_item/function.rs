// A function.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
fn silu(x: Value<f32>) -> Result<Value<f16>> { x.cast() }

fn main() {}
