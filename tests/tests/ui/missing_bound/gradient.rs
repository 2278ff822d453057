// A type parameter that need not be floating, for a gradient.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = T)]
struct Silu<T: Element>(T);

fn main() {}
