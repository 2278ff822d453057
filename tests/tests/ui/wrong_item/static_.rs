// A static.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
static SILU: f32 = 0.0;

fn main() {}
