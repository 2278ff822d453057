//! Rust lets any bracket enclose an attribute's arguments.

#![deny(warnings)]

use gradpact::prelude::*;

#[autograd_function[out = f16, grad = f32]]
struct Silu;

#[autograd_function { out = bf16 }]
struct Gelu;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> gradpact::Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> gradpact::Result<Value<f32>> {
        Ok(grad)
    }
}

fn has_contract<T: gradpact::Contract>(_: T) {}

fn main() {
    has_contract(Silu);
    has_contract(Gelu);
}
