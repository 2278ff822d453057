//! The functions of a real variable that kernels need, for `f32` and `f64` alike.

use core::ops::{Add, Div, Mul, Neg, Sub};

use super::compute::Compute;

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
    const HALF: Self;
    /// 1/√2.
    const FRAC_1_SQRT_2: Self;

    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn tanh(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
    fn erf(self) -> Self;
}

macro_rules! real {
    ($($type:ident: $erf:path;)*) => {$(
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const HALF: Self = 0.5;
            const FRAC_1_SQRT_2: Self = core::$type::consts::FRAC_1_SQRT_2;

            fn exp(self) -> Self {
                self.exp()
            }

            fn ln(self) -> Self {
                self.ln()
            }

            fn sqrt(self) -> Self {
                self.sqrt()
            }

            fn tanh(self) -> Self {
                self.tanh()
            }

            fn sin(self) -> Self {
                self.sin()
            }

            fn cos(self) -> Self {
                self.cos()
            }

            fn powf(self, exponent: Self) -> Self {
                self.powf(exponent)
            }

            fn erf(self) -> Self {
                $erf(self)
            }
        }
    )*};
}
real! { f32: libm::erff; f64: libm::erf; }
