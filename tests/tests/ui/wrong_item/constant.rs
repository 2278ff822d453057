// A constant.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
const SILU: f32 = 0.0;

fn main() {}
