//! The module has a `Result` with one parameter and an `Error` of its own.

#![deny(warnings)]
#![allow(dead_code)]

use gradpact::{Context, Op, Tensor, Value, autograd_function, f16};

struct Error;
type Result<T> = core::result::Result<T, Error>;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> gradpact::Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> gradpact::Result<Value<f32>> {
        Ok(grad)
    }
}

fn failing() -> Result<()> {
    Err(Error)
}

fn main() {
    assert!(failing().is_err());
}
