// A type parameter that may not be there: the condition belongs on the struct.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu<#[cfg(any())] T>;

fn main() {}
