//! What the tests of operations share: short constructors, and comparison of gradients with finite differences.

use crate::autograd::{BackwardOptions, grad};
use crate::dtype::{DType, Element, f16};
use crate::engine::Cpu;
use crate::error::Result;
use crate::shape::Shape;

type T = crate::DynTensor<Cpu>;
type Grads = Vec<Option<T>>;

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

/// Weights that make a scalar of an output without symmetries.
fn weights(shape: &Shape) -> T {
    let values =
        (0..shape.element_count()).map(|nth| (nth as f64 * 0.7 + 0.3).sin() + 1.5).collect::<Vec<_>>();
    f64s(&values, shape)
}

fn weighted(inputs: &[&T], function: &dyn Fn(&[&T]) -> Result<T>) -> Result<T> {
    let output = function(inputs)?;
    output.mul(&weights(output.shape()))?.sum()
}

/// Compares the gradient of each input, an `f64` tensor, with central differences.
pub(super) fn check(inputs: &[&T], function: impl Fn(&[&T]) -> Result<T>) {
    compare(inputs, &|x| weighted(x, &function), &|x| {
        let loss = weighted(x, &function)?;
        if !loss.requires_grad() {
            // A derivative that is constant: the next one is zero.
            return x.iter().map(|x| x.mul_scalar(0.0).map(Some)).collect();
        }
        grad(&[(&loss, None)], x, BackwardOptions::new().materialize_grads())
    });
}

/// As [`check`], and compares second derivatives with central differences of the first.
pub(super) fn check_double(inputs: &[&T], function: impl Fn(&[&T]) -> Result<T>) {
    check(inputs, &function);
    for position in 0..inputs.len() {
        check(inputs, |x| {
            let loss = weighted(x, &function)?;
            let options = BackwardOptions::new().create_graph().materialize_grads();
            let grads = grad(&[(&loss, None)], x, options)?;
            Ok(grads[position].clone().unwrap())
        });
    }
}

fn compare(inputs: &[&T], loss: &dyn Fn(&[&T]) -> Result<T>, gradients: &dyn Fn(&[&T]) -> Result<Grads>) {
    const STEP: f64 = 1e-6;
    let leaves: Vec<T> = inputs.iter().map(|input| input.requiring_grad().unwrap()).collect();
    let analytic = gradients(&leaves.iter().collect::<Vec<_>>()).unwrap();
    for (position, input) in inputs.iter().enumerate() {
        assert_eq!(input.dtype(), DType::F64);
        let analytic = values(analytic[position].as_ref().unwrap());
        for element in 0..input.shape().element_count() {
            let at = |offset: f64| {
                let mut moved = values(input);
                moved[element] += offset;
                // A leaf, so that functions which differentiate have a graph.
                let moved = f64s(&moved, input.shape()).requiring_grad().unwrap();
                let mut inputs: Vec<&T> = leaves.iter().collect();
                inputs[position] = &moved;
                values(&loss(&inputs).unwrap())[0]
            };
            let numeric = (at(STEP) - at(-STEP)) / (2.0 * STEP);
            let difference = (numeric - analytic[element]).abs();
            assert!(
                difference <= 1e-6 * (1.0 + numeric.abs()) * 10.0,
                "input {position}, element {element}: {} instead of {numeric}",
                analytic[element]
            );
        }
    }
}
