//! Elementary functions: exponential, logarithm, roots, powers, sine, cosine, absolute value and sign.
//!
//! All take any dtype; integers become `f32` (but for `abs` and `sign`, which leave them integers). 8- and 16-bit
//! floats are computed in `f32` and rounded once; backward computes in `f32` or wider throughout.

use super::arithmetic::both;
use super::{Broadcast, binary_method, broadcast_of, only, unary_function, unary_method, widened};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};

struct Exp;
unary_function! { Exp saves output, |this, x| kernels::exp(x), |this, grad, y| grad.mul(&y) }

unary_method! {
    /// `eˣ`, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · y`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `exp`.
    exp[Float]() => Exp
}

struct Ln;
unary_function! { Ln saves input, |this, x| kernels::ln(x), |this, grad, x| grad.div(&x) }

unary_method! {
    /// The natural logarithm, element by element; of negative numbers NaN, of zero −∞.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G / x`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `log`.
    ln[Float]() => Ln
}

struct Sqrt;
unary_function! { Sqrt saves output, |this, x| kernels::sqrt(x), |this, grad, y| grad.div(&y.mul_scalar(2.0)?) }

unary_method! {
    /// The square root, element by element; of negative numbers NaN.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G / 2y`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `sqrt`.
    sqrt[Float]() => Sqrt
}

struct Rsqrt;
unary_function! {
    Rsqrt saves output, |this, x| kernels::rsqrt(x),
    |this, grad, y| grad.mul_scalar(-0.5)?.mul(&y.pow_scalar(3.0)?)
}

unary_method! {
    /// One over the square root, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = −½ · G · y³`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `rsqrt`.
    rsqrt[Float]() => Rsqrt
}

struct Recip;
unary_function! { Recip saves output, |this, x| kernels::recip(x), |this, grad, y| grad.neg()?.mul(&y.mul(&y)?) }

unary_method! {
    /// `1 / self`, element by element; of zero it is infinite.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = −G · y²`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `reciprocal`.
    recip[Float]() => Recip
}

struct Sin;
unary_function! { Sin saves input, |this, x| kernels::sin(x), |this, grad, x| grad.mul(&x.cos()?) }

unary_method! {
    /// The sine, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · cos x`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `sin`.
    sin[Float]() => Sin
}

struct Cos;
unary_function! { Cos saves input, |this, x| kernels::cos(x), |this, grad, x| grad.mul(&x.sin()?.neg()?) }

unary_method! {
    /// The cosine, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = −G · sin x`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `cos`.
    cos[Float]() => Cos
}

struct Erf;
unary_function! {
    Erf saves input, |this, x| kernels::erf(x),
    |this, grad, x| {
        grad.mul(&x.mul(&x)?.neg()?.exp()?)?.mul_scalar(core::f64::consts::FRAC_2_SQRT_PI)
    }
}

unary_method! {
    /// The error function, element by element.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · 2/√π · exp(−x²)`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `erf`.
    erf[Float]() => Erf
}

struct Abs;
unary_function! { Abs saves input, |this, x| kernels::abs(x), |this, grad, x| grad.mul(&x.sign()?) }

unary_method! {
    /// The absolute value, element by element.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) of `bool`.
    ///
    /// # Gradient
    /// `dx = G · sign x`, which is 0 at 0.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `abs`.
    abs[Element]() => Abs
}

struct Sign;
unary_function! { Sign saves nothing, |this, x| kernels::sign(x), |this, grad| grad.mul_scalar(0.0) }

unary_method! {
    /// −1, 0 or 1, element by element; of a NaN 0.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) of `bool`.
    ///
    /// # Gradient
    /// Zero.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `sign`.
    sign[Element]() => Sign
}

/// `xˢ`.
struct PowScalar(f64);
unary_function! {
    PowScalar saves input, |this, x| kernels::pow_scalar(x, this.0),
    |this, grad, x| {
        if this.0 == 0.0 {
            // Also where x is 0, whose −1st power is infinite.
            return Ok(grad.mul_scalar(0.0)?.into());
        }
        grad.mul(&x.pow_scalar(this.0 - 1.0)?.mul_scalar(this.0)?)
    }
}

unary_method! {
    /// `selfˢ`, element by element, for a number `exponent`.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G · s · xˢ⁻¹`; 0 if `s` is 0.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `pow.Tensor_Scalar`.
    pow_scalar[Float](exponent: f64) => PowScalar(exponent)
}

/// `aᵇ`.
struct Pow(Broadcast);

impl Function<Cpu> for Pow {
    fn name(&self) -> &'static str {
        "Pow"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (base, exponent) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([base, exponent]);
        Ok(DynTensor::from_array(kernels::pow(base.array(), exponent.array())?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        let (base, exponent) = widened(ctx.saved_tensor(0)?, ctx.saved_tensor(1)?)?;
        let (grad, base) = widened(&grad, &base)?;
        let exponent = exponent.cast(base.dtype())?;
        let zero = DynTensor::scalar(0.0, base.dtype());
        let by_base = || {
            let slope = exponent.mul(&base.pow(&exponent.sub_scalar(1.0)?)?)?;
            grad.mul(&exponent.eq(&zero)?.where_cond(&zero, &slope)?)
        };
        let by_exponent = || {
            let slope = base.pow(&exponent)?.mul(&base.ln()?)?;
            // Zero to a power that is not negative stays zero (or one) nearby.
            let flat = kernels::mul(base.eq(&zero)?.array(), exponent.ge(&zero)?.array())?;
            grad.mul(&DynTensor::from_array(flat).where_cond(&zero, &slope)?)
        };
        both(ctx, &self.0, by_base, by_exponent)
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

binary_method! {
    /// `selfᵇ`, element by element, for a tensor `b` of exponents.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// Of dynamic tensors promoted; of integers it is an `f32`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
    ///
    /// # Gradient
    /// `da = G · b · aᵇ⁻¹` (0 where `b` is 0), `db = G · aᵇ · ln a` (0 where `a` is 0 and `b` not negative), each summed to its
    /// operand's shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `pow.Tensor_Tensor`.
    pow[Float] => |lhs, rhs| Pow(broadcast_of(lhs, rhs))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f32s, f64s, gradient, values};
    use crate::dtype::DType;

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, 1.5, 2.0, 0.1], [2, 2]);
        check_double(&[&x], |x| x[0].exp());
        check_double(&[&x], |x| x[0].ln());
        check_double(&[&x], |x| x[0].sqrt());
        check_double(&[&x], |x| x[0].rsqrt());
        check_double(&[&x], |x| x[0].recip());
        check_double(&[&x], |x| x[0].sin());
        check_double(&[&x], |x| x[0].cos());
        check_double(&[&x], |x| x[0].erf());
        check_double(&[&x], |x| x[0].pow_scalar(2.5));
        check_double(&[&x], |x| x[0].pow_scalar(0.0));
        check_double(&[&x.neg().unwrap()], |x| x[0].abs());
        check_double(&[&x.neg().unwrap()], |x| x[0].pow_scalar(2.0));
        check_double(&[&x, &f64s(&[1.5, -0.5], [2])], |x| x[0].pow(x[1]));
    }

    #[test]
    fn slopes_at_zero_are_those_of_pytorch() {
        let zero = f32s(&[0.0], [1]);
        assert_eq!(gradient(&zero, crate::DynTensor::abs), [0.0]);
        assert_eq!(gradient(&zero, |x| x.pow_scalar(0.0)), [0.0]);
        assert_eq!(gradient(&zero, crate::DynTensor::sqrt), [f64::INFINITY]);
        assert_eq!(gradient(&zero, |exponent| zero.pow(&exponent.add_scalar(1.0)?)), [0.0]);
        assert_eq!(gradient(&zero, |x| x.pow(&f32s(&[0.0], [1]))), [0.0]);
        assert!(gradient(&f32s(&[f32::NAN], [1]), crate::DynTensor::exp)[0].is_nan());
    }

    #[test]
    fn an_f32_gradient_meets_a_half_output_unrounded() {
        let x = f32s(&[0.0], [1]).requiring_grad().unwrap();
        let y = x.cast(DType::F16).unwrap().exp().unwrap();
        assert_eq!(y.dtype(), DType::F16);
        y.mul(&f32s(&[1e-10], [1])).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(values(&x.grad().unwrap()), [f64::from(1e-10_f32)]);
    }
}
