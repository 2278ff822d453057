// Several mistakes: parameters that need not be dtypes, in two structs.
use gradpact::prelude::*;

#[autograd_function(out = T, grad = f32)]
struct Silu<T>(T);

#[autograd_function(out = (f16, i64), grad = (G, none))]
struct Gelu<G>(G);

fn main() {}
