//! The norm of all gradients together, and clipping by it.

use super::parameter::{Leaf, Parameter, leaves};
use crate::cpu::Array;
use crate::cpu::kernels::{cast_counting, mul_scalar, total};
use crate::error::{Error, Result};

/// The square root of the sum of squares of all gradients' values.
fn norm_of(leaves: &[Leaf]) -> Result<f64> {
    let sums =
        leaves.iter().filter_map(|leaf| leaf.grad.as_ref()).map(|grad| total(grad, |value| value * value));
    Ok(sums.sum::<Result<f64>>()?.sqrt())
}

/// The norm of all gradients together: the square root of the sum of their squares, which is formed in `f64` whatever the
/// gradients' dtype. Parameters without a gradient count nothing.
///
/// # Errors
/// [`Error::Parameter`] for what is no leaf or given twice, [`Error::Argument`] if there are none.
pub fn grad_norm(params: &mut [&mut dyn Parameter]) -> Result<f64> {
    norm_of(&leaves("grad_norm", params)?)
}

/// Scales all gradients down together, if their [norm](grad_norm()) is more than `max_norm`, and returns the norm that
/// they had.
///
/// The factor is `max_norm / (norm + 1e-6)`; the product is rounded once to the gradient's dtype. A norm that is infinite or
/// NaN makes the gradients zero or NaN, as in PyTorch: see [`clip_grad_norm_if_finite`].
///
/// Source: [`torch.nn.utils.clip_grad_norm_`](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)
/// with `norm_type = 2`.
///
/// # Errors
/// As [`grad_norm()`], and [`Error::Argument`] if `max_norm` is negative or NaN.
///
/// # Examples
/// ```
/// use gradpact::optim::clip_grad_norm;
/// use gradpact::prelude::*;
///
/// # fn main() -> Result<()> {
/// // Gradients kept in f16, where the sum of these squares would be infinite.
/// let mut w = Tensor::<f16>::ones([9])?.requiring_grad()?;
/// w.mul_scalar(100.0)?.sum()?.backward()?;
/// assert_eq!(clip_grad_norm(&mut [&mut w], 30.0)?, 300.0);
/// assert_eq!(w.grad().unwrap().to_vec()?, [f16::from_f32(10.0); 9]);
/// # Ok(())
/// # }
/// ```
pub fn clip_grad_norm(params: &mut [&mut dyn Parameter], max_norm: f64) -> Result<f64> {
    clip("clip_grad_norm", params, max_norm, false)
}

/// [`clip_grad_norm`], but a norm that is infinite or NaN is an error, and changes no gradient: PyTorch's
/// `error_if_nonfinite`.
///
/// # Errors
/// As [`clip_grad_norm`], and [`Error::Parameter`] for the first parameter whose gradient is not finite.
pub fn clip_grad_norm_if_finite(params: &mut [&mut dyn Parameter], max_norm: f64) -> Result<f64> {
    clip("clip_grad_norm_if_finite", params, max_norm, true)
}

fn clip(
    operation: &'static str,
    params: &mut [&mut dyn Parameter],
    max_norm: f64,
    error_if_nonfinite: bool,
) -> Result<f64> {
    if max_norm.is_nan() || max_norm < 0.0 {
        let problem = format!("expected max_norm to be at least 0, got {max_norm}");
        return Err(Error::Argument { operation, problem });
    }
    let leaves = leaves(operation, params)?;
    let norm = norm_of(&leaves)?;
    if error_if_nonfinite && !norm.is_finite() {
        return Err(not_finite(operation, &leaves, norm));
    }
    let factor = max_norm / (norm + 1e-6);
    if factor >= 1.0 {
        return Ok(norm);
    }
    let clipped =
        leaves.iter().map(|leaf| leaf.grad.as_ref().map(|grad| mul_scalar(grad, factor)).transpose());
    let clipped = clipped.collect::<Result<Vec<_>>>()?;
    for (leaf, grad) in leaves.iter().zip(clipped) {
        if let Some(grad) = grad {
            leaf.set_grad(grad);
        }
    }
    Ok(norm)
}

/// How many values are infinite or NaN.
pub(super) fn nonfinite(array: &Array) -> Result<u64> {
    let (_, census) = cast_counting(array, array.dtype())?;
    // A gradient is floating-point, so there is one.
    Ok(census.map_or(0, |census| census.nan + census.infinite))
}

#[cold]
fn not_finite(operation: &'static str, leaves: &[Leaf], norm: f64) -> Error {
    for (position, leaf) in leaves.iter().enumerate() {
        match leaf.grad.as_ref().map(nonfinite) {
            Some(Ok(0)) | None => {}
            Some(Ok(count)) => {
                let expected = "a finite gradient".to_owned();
                let got = format!("{count} values that are infinite or NaN");
                return Error::Parameter { operation, position, expected, got };
            }
            Some(Err(error)) => return error,
        }
    }
    let problem =
        format!("the gradients are finite, but the sum of their squares is not: their norm is {norm}");
    Error::Argument { operation, problem }
}
