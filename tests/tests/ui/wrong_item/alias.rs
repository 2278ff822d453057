// A type alias.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
type Silu = ();

fn main() {}
