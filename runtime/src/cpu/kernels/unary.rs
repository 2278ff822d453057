//! Functions of one variable, element by element.
//!
//! Integers and `bool` become `f32` where the function leaves the integers, as in PyTorch.

use super::compute::{Compute, Scratch};
use super::math;
use super::read::Reader;
use super::real::Real;
use super::simd::{self, Loop};
use crate::cpu::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// A function of a real variable.
trait Unary: Copy + Sync {
    fn at<R: Real>(self, x: R) -> R;

    /// Overwrites results of which [`Unary::at`], for an `f32`, gives no more than a fast approximation.
    fn correct(self, _from: &[f32], _out: &mut [f32]) {}
}

fn map<U: Unary>(array: &Array, function: U) -> Result<Array> {
    let dtype = if array.dtype().is_float() { array.dtype() } else { DType::F32 };
    if dtype == DType::F64 {
        return map_in::<f64>(array, dtype, |x| function.at(x));
    }
    array.elementwise(|array| {
        let reader = Reader::new(array);
        let block = |start, out: &mut [f32], scratch: &mut Scratch<f32>| {
            let from = reader.block(start, out.len(), &mut scratch.0);
            simd::run(Map { from, out, function });
            function.correct(from, out);
        };
        let buffer = f32::produce(dtype, array.element_count(), &block)?;
        Ok(Array::from_buffer(buffer, array.shape().clone()))
    })
}

/// `function` of each element of `from`.
struct Map<'a, U> {
    from: &'a [f32],
    out: &'a mut [f32],
    function: U,
}

impl<U: Unary> Loop for Map<'_, U> {
    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.out.iter_mut().zip(self.from) {
            *out = self.function.at(x);
        }
    }
}

/// `function` of each element, computed as a `C`.
pub(super) fn map_in<C: Compute>(
    array: &Array,
    dtype: DType,
    function: impl Fn(C) -> C + Sync,
) -> Result<Array> {
    if array.shape().is_single() {
        let value = function(C::first(array));
        let buffer = C::produce(dtype, 1, &|_, out, _| out[0] = value)?;
        return Ok(Array::from_buffer(buffer, array.shape().clone()));
    }
    array.elementwise(|array| {
        let reader = Reader::new(array);
        let block = |start, out: &mut [C], scratch: &mut Scratch<C>| {
            let elements = reader.block(start, out.len(), &mut scratch.0);
            for (out, &x) in out.iter_mut().zip(elements) {
                *out = function(x);
            }
        };
        let buffer = C::produce(dtype, array.element_count(), &block)?;
        Ok(Array::from_buffer(buffer, array.shape().clone()))
    })
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $type:ident: |$x:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        struct $type;

        impl Unary for $type {
            #[inline(always)]
            fn at<R: Real>(self, $x: R) -> R {
                $body
            }
        }

        $(#[$doc])*
        pub(crate) fn $name(array: &Array) -> Result<Array> {
            map(array, $type)
        }
    )*};
}

unary! {
    /// The exponential.
    exp = Exp: |x| x.exp();
    /// The natural logarithm.
    ln = Ln: |x| x.ln();
    /// The square root; of negative numbers NaN.
    sqrt = Sqrt: |x| x.sqrt();
    /// One over the square root.
    rsqrt = Rsqrt: |x| R::ONE / x.sqrt();
    /// One over the value.
    recip = Recip: |x| R::ONE / x;
    /// The hyperbolic tangent.
    tanh = Tanh: |x| x.tanh();
    /// `1 / (1 + e⁻ˣ)`.
    sigmoid = Sigmoid: |x| x.sigmoid();
    /// `x · σ(x)`.
    silu = Silu: |x| x.silu();
    /// `x · Φ(x)`, with the exact distribution function of the normal distribution.
    gelu = Gelu: |x| x.gelu();
    /// The error function.
    erf = Erf: |x| x.erf();
}

/// A periodic function: beyond some turns an `f32` takes the standard library's.
macro_rules! periodic {
    ($($(#[$doc:meta])* $name:ident = $type:ident;)*) => {$(
        #[derive(Clone, Copy)]
        struct $type;

        impl Unary for $type {
            #[inline(always)]
            fn at<R: Real>(self, x: R) -> R {
                x.$name()
            }

            fn correct(self, from: &[f32], out: &mut [f32]) {
                for (out, &x) in out.iter_mut().zip(from).filter(|(_, x)| x.abs() > math::TURNS) {
                    *out = f32::$name(x);
                }
            }
        }

        $(#[$doc])*
        pub(crate) fn $name(array: &Array) -> Result<Array> {
            map(array, $type)
        }
    )*};
}

periodic! {
    /// The sine.
    sin = Sin;
    /// The cosine.
    cos = Cos;
}

/// A function that has integer values for integers.
macro_rules! unary_any {
    ($($(#[$doc:meta])* $name:ident: |$x:ident| $float:expr, $integer:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(array: &Array) -> Result<Array> {
            let dtype = array.dtype();
            match dtype {
                DType::Bool => {
                    let expected = "an integer or floating dtype".to_owned();
                    Err(Error::DType { operation: stringify!($name), expected, got: dtype })
                }
                DType::F64 => map_in::<f64>(array, dtype, |$x| $float),
                _ if dtype.is_float() => map_in::<f32>(array, dtype, |$x| $float),
                _ => map_in::<i64>(array, dtype, |$x: i64| $integer),
            }
        }
    )*};
}

unary_any! {
    /// `−x`.
    neg: |x| -x, x.wrapping_neg();
    /// `|x|`.
    abs: |x| x.abs(), x.wrapping_abs();
    /// `x` where it is positive, else 0. A NaN stays.
    relu: |x| if x < 0.0 { 0.0 } else { x + 0.0 }, x.max(0);
    /// −1, 0 or 1. Of a NaN 0, as in PyTorch.
    sign: |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 }, x.signum();
}

/// `array` limited to what lies between the bounds, which count themselves; a NaN stays.
///
/// If the lower bound is above the upper, everything becomes the upper, as in PyTorch.
pub(crate) fn clamp(array: &Array, min: Option<f64>, max: Option<f64>) -> Result<Array> {
    let dtype = array.dtype();
    if dtype.is_float() {
        let (min, max) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
        return if dtype == DType::F64 {
            map_in::<f64>(array, dtype, |x| between(x, min, max))
        } else {
            map_in::<f32>(array, dtype, |x| between(x, min as f32, max as f32))
        };
    }
    let bound = |bound: Option<f64>, absent| bound.map_or(Ok(absent), |bound| integer("clamp", bound, dtype));
    let (min, max) = (bound(min, i64::MIN)?, bound(max, i64::MAX)?);
    map_in::<i64>(array, dtype, |x| between(x, min, max))
}

fn between<C: Compute>(x: C, min: C, max: C) -> C {
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

/// `value`, a scalar operand of an integer array, as an integer of its dtype.
pub(crate) fn integer(operation: &'static str, value: f64, dtype: DType) -> Result<i64> {
    // 2^63 is no `i64`, though the nearest `i64` is read back as it.
    if crate::dtype::round_to(dtype, value) == value && value < 2.0_f64.powi(63) {
        return Ok(value as i64);
    }
    let problem = format!("the scalar {value} is not a value of {dtype}: cast the tensor first");
    Err(Error::Argument { operation, problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::f16;

    fn f32s(values: &[f32]) -> Array {
        Array::from_vec(values.to_vec(), [values.len()]).unwrap()
    }

    #[test]
    fn special_values_go_where_pytorch_sends_them() {
        let inf = f32::INFINITY;
        let all = |function: fn(&Array) -> Result<Array>, values: &[f32]| {
            function(&f32s(values)).unwrap().to_f64_vec().unwrap()
        };
        assert_eq!(all(exp, &[-inf, 0.0, inf, 100.0]), [0.0, 1.0, f64::INFINITY, f64::INFINITY]);
        assert!(all(ln, &[-1.0])[0].is_nan() && all(ln, &[0.0])[0] == f64::NEG_INFINITY);
        assert_eq!(all(rsqrt, &[0.0, 4.0]), [f64::INFINITY, 0.5]);
        assert_eq!(all(recip, &[0.0, -4.0, inf]), [f64::INFINITY, -0.25, 0.0]);
        assert_eq!(all(sigmoid, &[-inf, -200.0, 0.0, inf]), [0.0, 0.0, 0.5, 1.0]);
        assert!(all(silu, &[-inf])[0].is_nan());
        assert_eq!(all(relu, &[-1.0, -0.0, 2.0]), [0.0, 0.0, 2.0]);
        assert!(all(relu, &[f32::NAN])[0].is_nan());
        assert_eq!(all(sign, &[-3.0, 0.0, f32::NAN]), [-1.0, 0.0, 0.0]);
        // Φ(1) = 0.841344746068542948585…
        assert!((all(gelu, &[1.0])[0] - 0.841_344_746_068_542_9).abs() < 1e-7);
        assert!(
            (gelu(&Array::scalar(1.0_f64)).unwrap().item_f64().unwrap() - 0.841_344_746_068_542_9).abs()
                < 1e-15
        );
    }

    #[test]
    fn half_precision_is_computed_in_f32_and_rounded_once() {
        let x = f16::from_f32(10.0);
        // e^10 = 22026.465…; f16 values are 16 apart there.
        assert_eq!(exp(&Array::scalar(x)).unwrap().item::<f16>().unwrap().to_f64(), 22032.0);
        assert_eq!(
            sqrt(&Array::scalar(f16::from_f32(2.0))).unwrap().item::<f16>().unwrap(),
            f16::from_f32(2.0_f32.sqrt())
        );
    }

    #[test]
    fn integers_stay_integers_where_they_can() {
        let array = Array::from_vec(vec![-3_i8, -128, 5], [3]).unwrap();
        assert_eq!(abs(&array).unwrap().to_vec::<i8>().unwrap(), [3, -128, 5]);
        assert_eq!(neg(&array).unwrap().to_vec::<i8>().unwrap(), [3, -128, -5]);
        assert_eq!(exp(&Array::scalar(0_i32)).unwrap().item::<f32>().unwrap(), 1.0);
        assert!(neg(&Array::scalar(true)).is_err());
    }

    #[test]
    fn clamping_keeps_nan_and_the_upper_bound_wins() {
        let array = f32s(&[-2.0, 0.5, 2.0, f32::NAN]);
        let clamped = clamp(&array, Some(-1.0), Some(1.0)).unwrap().to_f64_vec().unwrap();
        assert_eq!(clamped[..3], [-1.0, 0.5, 1.0]);
        assert!(clamped[3].is_nan());
        assert_eq!(clamp(&array, Some(3.0), Some(1.0)).unwrap().to_f64_vec().unwrap()[..3], [1.0; 3]);
        assert_eq!(clamp(&Array::scalar(300_i32), None, Some(7.0)).unwrap().item::<i32>().unwrap(), 7);
        assert!(clamp(&Array::scalar(3_i32), Some(0.5), None).is_err());
    }

    #[test]
    fn empty_arrays_and_views_are_mapped_too() {
        assert_eq!(exp(&Array::zeros([0, 2], DType::F16).unwrap()).unwrap().shape()[..], [0, 2]);
        let view = Array::from_vec(vec![1.0_f64, 4.0, 9.0, 16.0], [2, 2]).unwrap().transpose(0, 1).unwrap();
        assert_eq!(sqrt(&view).unwrap().to_vec::<f64>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
    }
}
