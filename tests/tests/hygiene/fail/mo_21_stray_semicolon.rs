// A semicolon too many.
use gradpact::prelude::*;

#[autograd_function(out = f16)]
struct Silu;;

fn main() {}
