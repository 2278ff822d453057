//! Every key, among hostile names and strict lints, from macros, with generics, lifetimes, conditions and any engine.

#![forbid(elided_lifetimes_in_paths, missing_docs, single_use_lifetimes, unused_qualifications)]
#![deny(warnings)]
#![no_implicit_prelude]

use ::core::marker::PhantomData;
use ::gradpact::{Context, Element, Engine, Float, Result, Tensor, Value, autograd_function};

/// What an expansion might name.
mod hostile {
    #![allow(dead_code, non_camel_case_types, reason = "the point of it")]

    use ::gradpact::autograd_function;

    struct Option;
    struct Policy;
    struct ForwardOnly;
    struct NoBackward;
    struct Written;
    struct strict;
    struct cast;
    struct none;
    struct once;
    struct materialize;

    #[autograd_function(out = (f16, i64), policy = strict, materialize = false, once)]
    struct __E;

    #[autograd_function(out = (f16, i64), backward = none)]
    struct Op<'a, T>(&'a T);
}

macro_rules! from_words {
    ($name:ident: $policy:ident $materialize:literal $flag:ident, $key:ident = $value:ident) => {
        #[autograd_function(policy = $policy, materialize = $materialize, $flag, $key = $value)]
        struct $name;
    };
}
from_words!(Strict: strict false once, out = f16);

macro_rules! without_backward {
    ($name:ident: $out:ty, $value:ident) => {
        #[autograd_function(out = $out, backward = $value)]
        struct $name;
    };
}
without_backward!(Mask: bool, none);

impl ::gradpact::Op for Strict {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<::gradpact::f16>> {
        x.cast()
    }

    fn backward(
        &self,
        _: &Context,
        grad: ::core::option::Option<Value<::gradpact::f16>>,
    ) -> Result<Value<f32>> {
        ::core::option::Option::unwrap(grad).cast()
    }
}

impl ::gradpact::ForwardOnly for Mask {
    type Inputs = Tensor<f32>;

    fn forward(&self, x: Value<f32>) -> Result<Value<bool>> {
        x.cast()
    }
}

/// Asks more of its parameters than the struct does, and holds for every engine.
#[autograd_function(out = (T, i64), backward = none)]
#[cfg_attr(all(), cfg(all()))]
struct Round<T: Element, const N: usize>(PhantomData<T>)
where
    T: ::core::marker::Copy;

impl<T: Float, const N: usize, E: ::gradpact::Graph> ::gradpact::ForwardOnly<E> for Round<T, N> {
    type Inputs = (Tensor<T, T, E>, ::core::option::Option<Tensor<f32, f32, E>>);

    fn forward(
        &self,
        (x, _): (Value<T, E>, ::core::option::Option<Value<f32, E>>),
    ) -> Result<(Value<T, E>, Value<i64, E>)> {
        let rounded = x.cast()?;
        ::core::result::Result::Ok((x, rounded))
    }
}

/// A formula for one lifetime only.
#[autograd_function(out = f32, backward = none)]
struct Named<'a>(&'a str);

impl ::gradpact::ForwardOnly for Named<'static> {
    type Inputs = Tensor<f32>;

    fn forward(&self, x: Value<f32>) -> Result<Value<f32>> {
        let _ = self.0;
        ::core::result::Result::Ok(x)
    }
}

#[cfg(any())]
#[autograd_function(out = f16, backward = none)]
struct Absent;

fn is_op<E: Engine, T: ::gradpact::Op<E>>() {}

fn main() {
    is_op::<::gradpact::Cpu, Strict>();
    is_op::<::gradpact::Cpu, Mask>();
    is_op::<::gradpact::Cpu, Round<f32, 2>>();
    is_op::<::gradpact::Cpu, Named<'static>>();
}
