// A type that only the compiler could resolve.
use gradpact::prelude::*;

#[autograd_function(out = T::Storage, grad = f32)]
struct Silu<T>(T);

fn main() {}
