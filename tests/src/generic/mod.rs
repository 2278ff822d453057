//! What is written once and runs on every engine: operations and Functions with their inputs, and what came of a run.
//!
//! The embedded engine is compared with its own methods in `tests/generic`; a host compares itself with the embedded engine.

pub mod functions;
pub mod operations;

use gradpact::prelude::*;
use gradpact::{Engine, Ops};

/// Makes a tensor of a dtype and a shape from values in row-major order, each of which the dtype can hold.
pub type Make<E> = fn(DType, &[usize], &[f64]) -> Result<DynTensor<E>>;

/// How tensors of an engine are made and read.
#[derive(Clone, Copy, Debug)]
pub struct Access<E: Engine> {
    /// Makes one.
    pub make: Make<E>,
    /// The values in row-major order.
    pub read: fn(&DynTensor<E>) -> Result<Vec<f64>>,
}

/// The embedded engine.
pub const CPU: Access<gradpact::Cpu> = Access {
    make: |dtype, shape, values| DynTensor::from_slice(values, shape)?.cast(dtype),
    read: DynTensor::to_f64_vec,
};

/// A tensor, read. Equal if every bit is.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The dtype.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// The values.
    pub values: Vec<f64>,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        let bits = |seen: &Self| seen.values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        (self.dtype, &self.shape, bits(self)) == (other.dtype, &other.shape, bits(other))
    }
}

impl Seen {
    /// The largest difference of two values, relative to the larger of `expected` and 1; `None` if dtype or shape differ.
    pub fn difference(&self, expected: &Self) -> Option<f64> {
        let alike = self.dtype == expected.dtype && self.shape == expected.shape;
        let difference = |(a, b): (&f64, &f64)| if a == b { 0.0 } else { (a - b).abs() / b.abs().max(1.0) };
        // A NaN is as far away as can be.
        let larger = |most: f64, next: f64| if next <= most { most } else { next };
        alike.then(|| self.values.iter().zip(&expected.values).map(difference).fold(0.0, larger))
    }
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The output.
    pub output: Seen,
    /// The gradient that each leaf received, if one came.
    pub grads: Vec<Option<Seen>>,
}

impl Outcome {
    /// The largest difference, as [`Seen::difference`]; `None` if dtypes or shapes differ, or a gradient came to one alone.
    pub fn difference(&self, expected: &Self) -> Option<f64> {
        let mut most = self.output.difference(&expected.output)?;
        for (own, other) in self.grads.iter().zip(&expected.grads) {
            match (own, other) {
                (Some(own), Some(other)) => most = most.max(own.difference(other)?),
                (None, None) => {}
                _ => return None,
            }
        }
        Some(most)
    }
}

/// A leaf stored in `D` whose gradient arrives in `G`.
///
/// # Errors
/// What the engine reports.
pub fn leaf<D: Float, G: Float, E: Ops>(
    access: &Access<E>,
    shape: &[usize],
    values: &[f64],
) -> Result<Tensor<D, G, E>> {
    let tensor: Tensor<D, D, E> = (access.make)(D::DTYPE, shape, values)?.typed()?;
    tensor.requiring_grad_in()
}

/// Sends a seed of `dtype` from `output` and reads what came of it.
///
/// # Errors
/// What the engine and the Functions report.
pub fn outcome<E: Ops>(
    access: &Access<E>,
    output: &DynTensor<E>,
    seed: DType,
    grads: impl FnOnce() -> Vec<Option<DynTensor<E>>>,
) -> Result<Outcome> {
    // Every dtype holds these: 0.25, −0.5, 0.75, −1, …
    let value = |at: usize| (at + 1) as f64 * if at.is_multiple_of(2) { 0.25 } else { -0.25 };
    let values: Vec<f64> = (0..output.shape().element_count()).map(value).collect();
    output.backward_with(&(access.make)(seed, output.shape(), &values)?, BackwardOptions::new())?;
    let see = |tensor: &DynTensor<E>| {
        Ok(Seen { dtype: tensor.dtype(), shape: tensor.shape().clone(), values: (access.read)(tensor)? })
    };
    let grads = grads().iter().map(|grad| grad.as_ref().map(see).transpose()).collect::<Result<_>>()?;
    Ok(Outcome { output: see(output)?, grads })
}
