// An input that is not a tensor: it belongs in a field.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = f32;
}

fn main() {}
