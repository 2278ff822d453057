//! What the tests of operations share: short constructors, and checks of gradients.

use crate::dtype::{Element, f16};
use crate::engine::Cpu;
use crate::error::Result;
use crate::shape::Shape;
use crate::testing::{gradcheck_fn, gradgradcheck_fn};

type T = crate::DynTensor<Cpu>;

/// A tensor of these values.
pub(super) fn of<E: Element>(values: &[E], shape: impl Into<Shape>) -> T {
    T::from_slice(values, shape).unwrap()
}

pub(super) fn f64s(values: &[f64], shape: impl Into<Shape>) -> T {
    of(values, shape)
}

pub(super) fn f32s(values: &[f32], shape: impl Into<Shape>) -> T {
    of(values, shape)
}

pub(super) fn f16s(values: &[f64], shape: impl Into<Shape>) -> T {
    of(&values.iter().map(|&value| <f16 as Element>::from_f64(value)).collect::<Vec<_>>(), shape)
}

pub(super) fn values(tensor: &T) -> Vec<f64> {
    tensor.to_f64_vec().unwrap()
}

/// The gradient of the sum of `function` with respect to its only input.
pub(super) fn gradient(x: &T, function: impl Fn(&T) -> Result<T>) -> Vec<f64> {
    let x = x.requiring_grad().unwrap();
    function(&x).unwrap().sum().unwrap().backward().unwrap();
    values(&x.grad().unwrap())
}

/// Checks the gradients of `function` at `inputs`.
pub(super) fn check(inputs: &[&T], function: impl Fn(&[&T]) -> Result<T>) {
    gradcheck_fn(function, inputs).unwrap();
}

/// As [`check`], and checks second derivatives too.
pub(super) fn check_double(inputs: &[&T], function: impl Fn(&[&T]) -> Result<T>) {
    check(inputs, &function);
    gradgradcheck_fn(function, inputs).unwrap();
}
