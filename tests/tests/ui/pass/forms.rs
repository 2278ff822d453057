// Every legal form of the attribute's arguments and of the struct.
use std::marker::PhantomData;

use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Unit;

#[autograd_function(out = (f16, i64, bf16, f8e4m3), grad = (f32, none, any, none))]
pub struct Named {
    pub k: usize,
}

#[autograd_function(grad = (f64,), out = (f32,),)]
struct Tuple(f64);

#[autograd_function(out = i8, grad = f32, crate = gradpact)]
struct FakeQuantize<T: Clone = u8, const N: usize = 2>(T, [u8; N])
where
    T: Copy;

#[autograd_function(out = T, grad = G)]
struct Generic<T: Element, G: Float>(PhantomData<(T, G)>);

#[autograd_function(out = f64)]
struct Borrowed<'a>(&'a str);

#[autograd_function[out = bool, grad = none]]
struct r#type;

#[autograd_function(out = (f16))]
struct __E;

#[autograd_function(out = (f16, bf16, f32, f64, f8e4m3, f8e5m2, i16, i32))]
struct Eight;

#[autograd_function(out = (u8, bool))]
struct NoneFloating;

#[autograd_function(out = f16, grad = f32, policy = strict)]
struct Strict;

#[autograd_function(out = i64, policy = cast, materialize = true)]
struct Explicit;

#[autograd_function(once, out = (f16, i64, bf16), grad = (f32, none, any), materialize = false,)]
struct Once;

#[autograd_function(backward = none, out = (T, f16, bool))]
struct ForwardOnly<T: Element>(PhantomData<T>);

fn main() {}
