// A method.
use gradpact::prelude::*;

struct Silu;

impl Silu {
    #[autograd_function(out = f16, grad = f32)]
    fn forward(self: Box<Self>) {}
}

fn main() {}
