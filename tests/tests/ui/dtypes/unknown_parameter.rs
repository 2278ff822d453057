// A type parameter that the struct does not have.
use gradpact::prelude::*;

#[autograd_function(out = S, grad = f32)]
struct Silu<T>(T);

fn main() {}
