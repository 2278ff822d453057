// A trait.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
trait Silu {}

fn main() {}
