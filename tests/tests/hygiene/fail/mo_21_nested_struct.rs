// A struct where a type belongs.
use gradpact::prelude::*;

#[autograd_function(out = f16)]
struct Silu(struct S<B, T>);

fn main() {}
