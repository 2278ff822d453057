// Several mistakes: in the number of gradients, of outputs, and of both.
use gradpact::prelude::*;

#[autograd_function(out = (f16, bf16), grad = f32)]
struct TwoOutputs;

#[autograd_function(out = (), grad = f32)]
struct NoOutputs;

#[autograd_function(out = (f16, (bf16, f32)), grad = (f32, f32, f32))]
struct Nested;

fn main() {}
