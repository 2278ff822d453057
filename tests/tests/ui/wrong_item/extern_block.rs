// A block of foreign items.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
unsafe extern "C" {}

fn main() {}
