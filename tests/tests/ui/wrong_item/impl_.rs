// Methods.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
impl Silu {}

struct Silu;

fn main() {}
