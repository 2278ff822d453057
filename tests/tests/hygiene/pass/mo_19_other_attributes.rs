//! Other attributes stay on the struct, once, above and below.

#![deny(warnings)]

use gradpact::prelude::*;

#[derive(Clone)]
#[must_use = "above"]
#[autograd_function(out = f16, grad = f32)]
#[derive(Debug, PartialEq)]
#[repr(transparent)]
struct Silu {
    #[allow(unused)]
    width: f32,
}

#[deprecated = "use `Silu`"]
#[autograd_function(out = f16)]
struct DeprecatedAbove;

#[autograd_function(out = f16)]
#[deprecated = "use `Silu`"]
struct DeprecatedBelow;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> gradpact::Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> gradpact::Result<Value<f32>> {
        Ok(grad)
    }
}

fn main() {
    let silu = Silu { width: 1.0 };
    assert_eq!(silu.clone(), silu);
    assert_eq!(format!("{silu:?}"), "Silu { width: 1.0 }");
}
