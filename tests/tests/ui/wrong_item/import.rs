// An import.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
pub use core::primitive;

fn main() {}
