//! Arithmetic with a number that is no tensor: it adopts the tensor's dtype and has no gradient.

use super::{unary_function, unary_method};
use crate::cpu::{Array, kernels};
use crate::error::Result;

/// `x + s`.
struct AddScalar(f64);

unary_function! { AddScalar saves nothing, |this, x| kernels::add_scalar(x, this.0), |this, grad| Ok(grad) }

unary_method! {
    /// `self + scalar`, element by element.
    ///
    /// # Dtypes
    /// That of the tensor. Of 8- and 16-bit floats the sum is formed in `f32`, to which the scalar is rounded, and rounded
    /// once.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if the tensor is of integers and the scalar is none.
    ///
    /// # Gradient
    /// `dx = G`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `add.Scalar`.
    add_scalar[Element](scalar: f64) => AddScalar(scalar)
}

unary_method! {
    /// `self − scalar`, element by element. See [`add_scalar`](Self::add_scalar).
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if the tensor is of integers and the scalar is none.
    sub_scalar[Element](scalar: f64) => SubScalar(scalar)
}

/// `x − s`.
struct SubScalar(f64);

unary_function! { SubScalar saves nothing, |this, x| difference(x, this.0), |this, grad| Ok(grad) }

/// `x − s`; of unsigned integers `−s` would be no value.
fn difference(x: &Array, scalar: f64) -> Result<Array> {
    if x.dtype().is_float() {
        return kernels::add_scalar(x, -scalar);
    }
    kernels::integer("sub_scalar", scalar, x.dtype())?;
    kernels::sub(x, &Array::scalar_of(scalar, x.dtype()))
}

/// `x · s`.
struct MulScalar(f64);

unary_function! { MulScalar saves nothing, |this, x| kernels::mul_scalar(x, this.0), |this, grad| grad.mul_scalar(this.0) }

unary_method! {
    /// `self · scalar`, element by element.
    ///
    /// # Dtypes
    /// As [`add_scalar`](Self::add_scalar).
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if the tensor is of integers and the scalar is none.
    ///
    /// # Gradient
    /// `dx = G · s`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `mul.Scalar`.
    mul_scalar[Element](scalar: f64) => MulScalar(scalar)
}

/// `x / s`.
struct DivScalar(f64);

unary_function! { DivScalar saves nothing, |this, x| kernels::div_scalar(x, this.0), |this, grad| grad.div_scalar(this.0) }

unary_method! {
    /// `self / scalar`, element by element.
    ///
    /// # Dtypes
    /// As [`add_scalar`](Self::add_scalar); of integers it is an `f32`.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G / s`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `div.Scalar`.
    div_scalar[Float](scalar: f64) => DivScalar(scalar)
}

/// `−x`.
struct Neg;

unary_function! { Neg saves nothing, |this, x| kernels::neg(x), |this, grad| grad.neg() }

unary_method! {
    /// `−self`, element by element.
    ///
    /// # Dtypes
    /// That of the tensor; integers wrap.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) of `bool`.
    ///
    /// # Gradient
    /// `dx = −G`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `neg`.
    neg[Element]() => Neg
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, f16s, f64s, gradient, of, values};
    use crate::dtype::DType;

    #[test]
    fn gradients_agree_with_finite_differences() {
        let x = f64s(&[0.5, -1.5, 2.0], [3]);
        check(&[&x], |x| x[0].add_scalar(3.0));
        check(&[&x], |x| x[0].sub_scalar(3.0));
        check(&[&x], |x| x[0].mul_scalar(-3.0));
        check(&[&x], |x| x[0].div_scalar(3.0));
        check(&[&x], |x| x[0].neg());
    }

    #[test]
    fn a_small_factor_does_not_vanish_in_a_wider_gradient() {
        let x = f16s(&[1.0], [1]);
        assert_eq!(gradient(&x, |x| x.mul_scalar(1e-10)), [0.0], "an f16 leaf keeps its gradient in f16");
        let wide = x.requiring_grad_in(crate::GradDType::Exactly(DType::F32)).unwrap();
        wide.mul_scalar(1e-10).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(wide.grad().unwrap().to_vec::<f32>().unwrap(), [1e-10]);
    }

    #[test]
    fn scalars_adopt_the_dtype_of_the_tensor() {
        let bytes = of(&[1_u8, 2], [2]);
        assert_eq!(bytes.add_scalar(3.0).unwrap().dtype(), DType::U8);
        assert!(bytes.add_scalar(0.5).is_err());
        assert!(bytes.mul_scalar(-1.0).is_err());
        assert_eq!(values(&bytes.div_scalar(2.0).unwrap()), [0.5, 1.0]);
    }
}
