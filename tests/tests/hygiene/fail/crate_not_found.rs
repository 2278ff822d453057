// The path of the runtime leads nowhere.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32, crate = facade::gradpact)]
struct Silu;

fn main() {}
