// A const parameter is not a type.
use gradpact::prelude::*;

#[autograd_function(out = N, grad = f32)]
struct Silu<const N: usize>;

fn main() {}
