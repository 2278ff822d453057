//! Activations: functions that networks put between their layers.
//!
//! 8- and 16-bit floats are computed in `f32` and rounded once; backward computes in `f32` or wider throughout.

use super::{unary_function, unary_method};
use crate::autograd::DynTensor;
use crate::cpu::kernels;

struct Tanh;
unary_function! {
    Tanh saves output, |this, x| kernels::tanh(x),
    |this, grad, y| grad.mul(&y.mul(&y)?.neg()?.add_scalar(1.0)?)
}

unary_method! {
    /// The hyperbolic tangent, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · (1 − y²)`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `tanh`.
    tanh[Float]() => Tanh
}

struct Sigmoid;
unary_function! {
    Sigmoid saves output, |this, x| kernels::sigmoid(x),
    |this, grad, y| grad.mul(&y.neg()?.add_scalar(1.0)?)?.mul(&y)
}

unary_method! {
    /// `1 / (1 + e⁻ˣ)`, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · (1 − y) · y`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `sigmoid`.
    sigmoid[Float]() => Sigmoid
}

struct Relu;
unary_function! {
    Relu saves output, |this, x| kernels::relu(x),
    |this, grad, y| {
        let zero = DynTensor::scalar(0.0, grad.dtype());
        // So that a NaN passes its gradient on.
        y.le(&zero)?.where_cond(&zero, &grad)
    }
}

unary_method! {
    /// `x` where it is positive, else 0; a NaN stays.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) of `bool`.
    ///
    /// # Gradient
    /// `dx = G` where `x` is positive, else 0.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `relu`.
    relu[Element]() => Relu
}

struct Silu;
unary_function! {
    Silu saves input, |this, x| kernels::silu(x),
    |this, grad, x| {
        let sigmoid = x.sigmoid()?;
        let slope = x.mul(&sigmoid.neg()?.add_scalar(1.0)?)?.add_scalar(1.0)?;
        grad.mul(&sigmoid)?.mul(&slope)
    }
}

unary_method! {
    /// `x · σ(x)`, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · σ(x) · (1 + x · (1 − σ(x)))`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `silu`.
    silu[Float]() => Silu
}

struct Gelu;
unary_function! {
    Gelu saves input, |this, x| kernels::gelu(x),
    |this, grad, x| {
        let distribution = x.mul_scalar(core::f64::consts::FRAC_1_SQRT_2)?.erf()?.add_scalar(1.0)?.mul_scalar(0.5)?;
        let density = x.mul(&x)?.mul_scalar(-0.5)?.exp()?.mul_scalar(INVERSE_SQRT_2_PI)?;
        grad.mul(&distribution.add(&x.mul(&density)?)?)
    }
}

/// 1/√2π.
const INVERSE_SQRT_2_PI: f64 = 0.5 * core::f64::consts::FRAC_1_SQRT_2 * core::f64::consts::FRAC_2_SQRT_PI;

unary_method! {
    /// `x · Φ(x)`, element by element, with the exact distribution function Φ of the normal distribution.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · (Φ(x) + x · φ(x))`, where φ is the density.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `gelu` with `approximate='none'`.
    gelu[Float]() => Gelu
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f16s, f32s, f64s, gradient, values};
    use crate::dtype::DType;

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1], [2, 2]);
        check_double(&[&x], |x| x[0].tanh());
        check_double(&[&x], |x| x[0].sigmoid());
        check_double(&[&x], |x| x[0].relu());
        check_double(&[&x], |x| x[0].silu());
        check_double(&[&x], |x| x[0].gelu());
    }

    #[test]
    fn relu_has_no_slope_at_zero_and_swallows_a_nan_gradient_there() {
        assert_eq!(gradient(&f32s(&[0.0, -1.0, 3.0], [3]), crate::DynTensor::relu), [0.0, 0.0, 1.0]);
        let poison = f32s(&[f32::NAN, f32::NAN], [2]);
        let received = gradient(&f32s(&[-1.0, 1.0], [2]), |x| x.relu()?.mul(&poison));
        assert!(received[0] == 0.0 && received[1].is_nan());
    }

    #[test]
    fn a_half_gradient_is_rounded_once() {
        // y = σ(0.5) rounded to f16 is 0.62255859375; the exact slope (1 − y)·y is 0.234979391…
        let y = 0.622_558_593_75;
        let expected = crate::dtype::round_to(DType::F16, (1.0 - y) * y);
        assert_eq!(values(&f16s(&[0.5], [1]).sigmoid().unwrap()), [y]);
        assert_eq!(gradient(&f16s(&[0.5], [1]), crate::DynTensor::sigmoid), [expected]);
    }
}
