//! The functions of a real variable that kernels need, for `f32` and `f64` alike.

use core::ops::{Add, Div, Mul, Neg, Sub};

use super::compute::Compute;
use super::math;

/// `f32` or `f64`.
pub(crate) trait Real:
    Compute
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;

    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn tanh(self) -> Self;
    /// Of an `f32` good up to [`math::TURNS`] only.
    fn sin(self) -> Self;
    /// Of an `f32` good up to [`math::TURNS`] only.
    fn cos(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
    fn erf(self) -> Self;

    /// `1 / (1 + e⁻ˣ)`.
    fn sigmoid(self) -> Self;

    /// `x / (1 + e⁻ˣ)`.
    fn silu(self) -> Self;

    /// `x · ½ · (1 + erf(x/√2))`.
    fn gelu(self) -> Self;
}

/// Methods that are functions of the same name.
macro_rules! as_functions {
    ($type:ty: $($name:ident = $function:path),*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            $function(self)
        }
    )*};
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    as_functions! {
        f32: exp = math::exp, ln = math::ln, sqrt = Self::sqrt, tanh = math::tanh, erf = math::erf,
        sigmoid = math::sigmoid, silu = math::silu, gelu = math::gelu, sin = math::sin, cos = math::cos
    }

    fn powf(self, exponent: Self) -> Self {
        self.powf(exponent)
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    as_functions! {
        f64: exp = Self::exp, ln = Self::ln, sqrt = Self::sqrt, tanh = Self::tanh, erf = libm::erf, sin = Self::sin,
        cos = Self::cos
    }

    fn powf(self, exponent: Self) -> Self {
        self.powf(exponent)
    }

    fn sigmoid(self) -> Self {
        1.0 / (1.0 + (-self).exp())
    }

    fn silu(self) -> Self {
        self / (1.0 + (-self).exp())
    }

    fn gelu(self) -> Self {
        0.5 * self * (1.0 + libm::erf(self * core::f64::consts::FRAC_1_SQRT_2))
    }
}
