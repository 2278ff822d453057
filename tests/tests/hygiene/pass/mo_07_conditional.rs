//! The struct is there or not, and its impls with it, wherever the condition stands.

#![deny(warnings)]

use gradpact::prelude::*;

#[cfg(any())]
#[autograd_function(out = f16, grad = f32)]
struct Above;

#[autograd_function(out = f16, grad = f32)]
#[cfg(any())]
struct Below;

#[autograd_function(out = f16, grad = f32)]
#[cfg_attr(all(), cfg(any()), derive(Clone))]
struct ByAttribute;

#[cfg(all())]
#[autograd_function(out = f16, grad = f32)]
#[cfg(all())]
#[cfg_attr(any(), cfg(any()))]
struct Silu;

#[cfg_attr(all(), autograd_function(out = f16, grad = f32))]
#[cfg_attr(any(), autograd_function(out = bf16))]
struct Chosen;

#[autograd_function(out = f16)]
#[allow(dead_code)]
struct Fields {
    #[cfg(any())]
    absent: Absent,
    #[cfg(all())]
    present: f32,
}

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
    has_contract(Chosen);
    has_contract(Fields { present: 1.0 });
}
