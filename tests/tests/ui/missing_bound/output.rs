// A type parameter that need not be a dtype.
use gradpact::prelude::*;

#[autograd_function(out = T)]
struct Silu<T>(T);

fn main() {}
