// A module.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
mod silu { //! Formulas.
}

fn main() {}
