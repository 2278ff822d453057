// Two Functions without formulas.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

#[autograd_function(out = bf16)]
struct Scale;

fn describe(_: impl Op) {}

fn main() {
    describe(Silu);
    describe(Scale);
}
