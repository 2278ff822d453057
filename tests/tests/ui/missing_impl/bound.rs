// A generic function asks for formulas.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

fn describe(_: impl Op) {}

fn main() { describe(Silu) }
