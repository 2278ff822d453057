// A function, of an unusual kind.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
pub async unsafe extern "C" fn silu() {}

fn main() {}
