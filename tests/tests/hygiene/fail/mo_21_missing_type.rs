// A field without its type.
use gradpact::prelude::*;

#[autograd_function(out = f16)]
struct Silu {
    x: ,
}

fn main() {}
