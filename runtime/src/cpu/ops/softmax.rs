//! Softmax and its logarithm along an axis.

use super::{unary_function, unary_method};
use crate::cpu::kernels;

/// Along the axis.
struct Softmax(isize);
unary_function! {
    Softmax saves output, |this, x| kernels::softmax(x, this.0, false),
    |this, grad, y| {
        let weighted = grad.mul(&y)?;
        weighted.sub(&y.mul(&weighted.sum_axes(&[this.0], true)?)?)
    }
}

unary_method! {
    /// `exp(x) / Σ exp(x)` along `axis`.
    ///
    /// # Dtypes
    /// Floating. 8- and 16-bit floats are computed in `f32` and rounded once, in backward too.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), [`Error::DType`](crate::Error::DType) of integers.
    ///
    /// # Gradient
    /// `dx = y · (G − Σ G·y)`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `_softmax`.
    softmax[Float](axis: isize) => Softmax(axis)
}

/// Along the axis.
struct LogSoftmax(isize);
unary_function! {
    LogSoftmax saves output, |this, x| kernels::softmax(x, this.0, true),
    |this, grad, y| grad.sub(&y.exp()?.mul(&grad.sum_axes(&[this.0], true)?)?)
}

unary_method! {
    /// `x − ln Σ exp(x)` along `axis`, without overflow on the way.
    ///
    /// # Dtypes
    /// Floating. 8- and 16-bit floats are computed in `f32` and rounded once, in backward too.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), [`Error::DType`](crate::Error::DType) of integers.
    ///
    /// # Gradient
    /// `dx = G − exp(y) · Σ G`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `_log_softmax`.
    log_softmax[Float](axis: isize) => LogSoftmax(axis)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f64s};

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1, 0.3, -0.4], [2, 3]);
        for axis in [0, 1, -1] {
            check_double(&[&x], |x| x[0].softmax(axis));
            check_double(&[&x], |x| x[0].log_softmax(axis));
        }
    }
}
