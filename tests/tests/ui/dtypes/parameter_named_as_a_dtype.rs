// A type parameter with the name of a dtype.
use gradpact::prelude::*;

#[autograd_function(out = f32, grad = f32)]
struct Silu<f32>(f32);

fn main() {}
