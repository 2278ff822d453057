//! What the keys `policy`, `materialize`, `once` and `backward` promise at run time, and their calls in the dynamic layer.
//! Which mistakes in them do not compile is in `ui/keys` and `ui/forward_only`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod forward_only;
mod materialize;
mod once;
mod policy;

use gradpact::prelude::*;

/// A leaf.
fn leaf(values: &[f32]) -> Tensor<f32> {
    Tensor::from_slice(values, [values.len()]).unwrap().requiring_grad().unwrap()
}

/// A tensor of these values, to be sent as a gradient.
fn of(dtype: DType, values: &[f64]) -> DynTensor {
    DynTensor::from_slice(values, [values.len()]).unwrap().cast(dtype).unwrap()
}

/// The elements of a leaf's gradient.
fn grad(leaf: &Tensor<f32>) -> Vec<f32> {
    leaf.grad().unwrap().to_vec().unwrap()
}

/// Default options.
fn options() -> BackwardOptions {
    BackwardOptions::new()
}

/// The error's text has every part.
#[track_caller]
fn says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
}
