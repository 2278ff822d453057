//! A documented crate whose Functions are public.

#![deny(missing_docs, warnings)]

use gradpact::prelude::*;

/// The sigmoid-weighted linear unit.
///
/// It has several paragraphs, and code:
///
/// ```
/// let silu = Silu;
/// ```
#[doc = include_str!("mo_05_missing_docs.rs")]
#[autograd_function(out = f16, grad = f32)]
#[derive(Clone, Debug)]
pub struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> gradpact::Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> gradpact::Result<Value<f32>> {
        Ok(grad)
    }
}

fn main() {}
