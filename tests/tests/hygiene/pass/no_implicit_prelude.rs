//! Nothing is in scope but what is named.

#![no_implicit_prelude]
#![deny(warnings)]

#[::gradpact::autograd_function(out = f16, grad = f32)]
struct Silu;

impl ::gradpact::Op for Silu {
    type Inputs = ::gradpact::Tensor<f32>;

    fn forward(
        &self,
        _: &mut ::gradpact::Context,
        x: ::gradpact::Value<f32>,
    ) -> ::gradpact::Result<::gradpact::Value<::gradpact::f16>> {
        x.cast()
    }

    fn backward(
        &self,
        _: &::gradpact::Context,
        grad: ::gradpact::Value<f32>,
    ) -> ::gradpact::Result<::gradpact::Value<f32>> {
        ::core::result::Result::Ok(grad)
    }
}

#[::gradpact::autograd_function(out = (T, i64), grad = (any, none))]
struct Generic<T: ::gradpact::Element>(::core::marker::PhantomData<T>);

fn main() {
    let _ = (Silu, Generic::<f32>(::core::marker::PhantomData));
}
