//! A crate that forbids what expansions are often made of.

#![forbid(
    deprecated,
    elided_lifetimes_in_paths,
    missing_docs,
    non_camel_case_types,
    non_local_definitions,
    non_snake_case,
    single_use_lifetimes,
    trivial_casts,
    unreachable_pub,
    unsafe_code,
    unused_lifetimes,
    unused_qualifications
)]
#![deny(warnings)]

use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

#[autograd_function(out = (T, i64), grad = (G, none), crate = gradpact)]
struct Generic<T: Float, G: Float>(core::marker::PhantomData<(T, G)>);

fn main() {
    let _ = (Silu, Generic::<f32, f64>(core::marker::PhantomData));
}
