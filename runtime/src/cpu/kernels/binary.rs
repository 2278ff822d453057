//! Functions of two variables, element by element, with NumPy broadcasting; comparisons; choosing by a condition.
//!
//! Operands of different dtypes are promoted first, arrays of shape `[]` like any other. A scalar given as an `f64`
//! adopts the array's dtype, but is not rounded to 8 or 16 bits: it takes part in the computation as an `f32`.

use std::borrow::Cow;

use super::compute::{Compute, Scratch, with_compute};
use super::read::Reader;
use super::real::Real;
use super::unary::{integer, map_in};
use crate::cpu::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::CmpOp;
use crate::shape::Shape;

/// The shape that the operands broadcast to.
pub(crate) fn broadcast_shape(operation: &'static str, lhs: &Shape, rhs: &Shape) -> Result<Shape> {
    lhs.broadcast(rhs).ok_or_else(|| {
        let problem = format!(
            "shapes {lhs} and {rhs} do not broadcast: from the last axis on, extents must be equal or 1"
        );
        Error::Shape { operation, problem }
    })
}

fn view<'a>(array: Cow<'a, Array>, shape: &Shape) -> Result<Cow<'a, Array>> {
    if array.shape() == shape { Ok(array) } else { array.broadcast_to(shape).map(Cow::Owned) }
}

/// Operands of equal shape, and that shape.
type Operands<'a> = (Cow<'a, Array>, Cow<'a, Array>, Shape);

/// Operands that can be read as what `dtype` is computed in; as they are, wherever possible.
#[inline]
fn operands<'a>(
    operation: &'static str,
    lhs: &'a Array,
    rhs: &'a Array,
    dtype: DType,
) -> Result<Operands<'a>> {
    if lhs.dtype() == rhs.dtype() && lhs.dtype() == dtype && lhs.shape() == rhs.shape() {
        return Ok((Cow::Borrowed(lhs), Cow::Borrowed(rhs), lhs.shape().clone()));
    }
    promoted(operation, lhs, rhs, dtype)
}

/// [`operands`] that differ.
fn promoted<'a>(
    operation: &'static str,
    lhs: &'a Array,
    rhs: &'a Array,
    dtype: DType,
) -> Result<Operands<'a>> {
    let shape = broadcast_shape(operation, lhs.shape(), rhs.shape())?;
    let operand = |array: &'a Array| {
        // An integer is rounded to a small float before it is computed with, as in PyTorch; floats are read exactly.
        let small = dtype.accumulation() != dtype && dtype.is_float();
        let array = if small && !array.dtype().is_float() {
            Cow::Owned(array.cast(dtype)?)
        } else {
            Cow::Borrowed(array)
        };
        view(array, &shape)
    };
    Ok((operand(lhs)?, operand(rhs)?, shape))
}

/// `function` of each pair, computed as `C` and rounded to `dtype`.
fn zip<C: Compute>(
    (lhs, rhs, shape): Operands<'_>,
    dtype: DType,
    function: impl Fn(C, C) -> C + Sync,
) -> Result<Array> {
    if shape.is_single() {
        let value = function(C::first(&lhs), C::first(&rhs));
        return Ok(Array::from_buffer(C::produce(dtype, 1, &|_, out, _| out[0] = value)?, shape));
    }
    let (left, right) = (Reader::new(&lhs), Reader::new(&rhs));
    let buffer = C::produce(dtype, shape.checked_len()?, &|start, out, scratch: &mut Scratch<C>| {
        let left = left.block(start, out.len(), &mut scratch.0);
        let right = right.block(start, out.len(), &mut scratch.1);
        for ((out, &left), &right) in out.iter_mut().zip(left).zip(right) {
            *out = function(left, right);
        }
    })?;
    Ok(Array::from_buffer(buffer, shape))
}

/// A function with the same formula for all types that are computed in.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident: |$a:ident, $b:ident| $float:expr, $integer:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(lhs: &Array, rhs: &Array) -> Result<Array> {
            let operation = stringify!($name);
            let dtype = lhs.dtype().promote(rhs.dtype());
            let operands = operands(operation, lhs, rhs, dtype)?;
            match dtype {
                DType::F64 => zip::<f64>(operands, dtype, |$a, $b| $float),
                _ if dtype.is_float() => zip::<f32>(operands, dtype, |$a, $b| $float),
                _ => zip::<i64>(operands, dtype, |$a: i64, $b: i64| $integer),
            }
        }
    )*};
}

binary! {
    /// `a + b`; of truth values "or".
    add: |a, b| a + b, a.wrapping_add(b);
    /// `a · b`; of truth values "and".
    mul: |a, b| a * b, a.wrapping_mul(b);
    /// `a − b`, for [`sub`].
    subtract: |a, b| a - b, a.wrapping_sub(b);
    /// The larger; a NaN wins.
    maximum: |a, b| if a > b || a.is_nan() { a } else { b }, a.max(b);
    /// The smaller; a NaN wins.
    minimum: |a, b| if a < b || a.is_nan() { a } else { b }, a.min(b);
}

/// `a − b`. Truth values have no difference.
pub(crate) fn sub(lhs: &Array, rhs: &Array) -> Result<Array> {
    if lhs.dtype() == DType::Bool && rhs.dtype() == DType::Bool {
        let expected = "a number; of truth values use a comparison".to_owned();
        return Err(Error::DType { operation: "sub", expected, got: DType::Bool });
    }
    subtract(lhs, rhs)
}

/// The dtype of a function that leaves the integers.
fn real_dtype(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

/// A function of real variables: integers become `f32`.
macro_rules! real_binary {
    ($($(#[$doc:meta])* $name:ident: |$a:ident, $b:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(lhs: &Array, rhs: &Array) -> Result<Array> {
            let dtype = real_dtype(lhs.dtype().promote(rhs.dtype()));
            let operands = operands(stringify!($name), lhs, rhs, dtype)?;
            if dtype == DType::F64 {
                zip::<f64>(operands, dtype, |$a, $b| $body)
            } else {
                zip::<f32>(operands, dtype, |$a, $b| $body)
            }
        }
    )*};
}

real_binary! {
    /// `a / b`; of integers an `f32`.
    div: |a, b| a / b;
    /// `aᵇ`; of integers an `f32`.
    pow: |a, b| power(a, b);
}

/// The exponents with a name are computed by it, as in PyTorch.
fn power<R: Real>(base: R, exponent: R) -> R {
    if exponent == R::ONE + R::ONE { base * base } else { base.powf(exponent) }
}

macro_rules! scalar {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $s:ident| $float:expr, $integer:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(array: &Array, scalar: f64) -> Result<Array> {
            let dtype = array.dtype();
            match dtype {
                DType::F64 => map_in::<f64>(array, dtype, |$x| { let $s = scalar; $float }),
                _ if dtype.is_float() => map_in::<f32>(array, dtype, |$x| { let $s = scalar as f32; $float }),
                _ => {
                    let $s = integer(stringify!($name), scalar, dtype)?;
                    map_in::<i64>(array, dtype, |$x: i64| $integer)
                }
            }
        }
    )*};
}

scalar! {
    /// `x + s`.
    add_scalar: |x, s| x + s, x.wrapping_add(s);
    /// `x · s`.
    mul_scalar: |x, s| x * s, x.wrapping_mul(s);
}

/// `x / s`; of integers an `f32`.
pub(crate) fn div_scalar(array: &Array, scalar: f64) -> Result<Array> {
    let dtype = real_dtype(array.dtype());
    if dtype == DType::F64 {
        map_in::<f64>(array, dtype, |x| x / scalar)
    } else {
        map_in::<f32>(array, dtype, |x| x / scalar as f32)
    }
}

/// `xˢ`; of integers an `f32`.
pub(crate) fn pow_scalar(array: &Array, exponent: f64) -> Result<Array> {
    let dtype = real_dtype(array.dtype());
    if dtype == DType::F64 {
        map_in::<f64>(array, dtype, |x| power(x, exponent))
    } else {
        map_in::<f32>(array, dtype, |x| power(x, exponent as f32))
    }
}

/// Whether each pair of elements, promoted to one dtype, compares so; `bool`. Nothing but `ne` holds of a NaN.
pub(crate) fn compare(lhs: &Array, rhs: &Array, comparison: CmpOp) -> Result<Array> {
    let dtype = lhs.dtype().promote(rhs.dtype());
    let operands = operands(comparison.name(), lhs, rhs, dtype)?;
    with_compute!(dtype, C => compare_in::<C>(operands, comparison))
}

fn compare_in<C: Compute + From<bool>>(operands: Operands<'_>, comparison: CmpOp) -> Result<Array> {
    match comparison {
        CmpOp::Eq => zip(operands, DType::Bool, |a: C, b| C::from(a == b)),
        CmpOp::Ne => zip(operands, DType::Bool, |a: C, b| C::from(a != b)),
        CmpOp::Lt => zip(operands, DType::Bool, |a: C, b| C::from(a < b)),
        CmpOp::Le => zip(operands, DType::Bool, |a: C, b| C::from(a <= b)),
        CmpOp::Gt => zip(operands, DType::Bool, |a: C, b| C::from(a > b)),
        CmpOp::Ge => zip(operands, DType::Bool, |a: C, b| C::from(a >= b)),
    }
}

/// `a` where `condition` holds, else `b`; all three broadcast, and the condition is `bool`.
pub(crate) fn choose(condition: &Array, lhs: &Array, rhs: &Array) -> Result<Array> {
    let operation = "where";
    if condition.dtype() != DType::Bool {
        let expected = "a condition of dtype bool".to_owned();
        return Err(Error::DType { operation, expected, got: condition.dtype() });
    }
    let dtype = lhs.dtype().promote(rhs.dtype());
    let (lhs, rhs, shape) = operands(operation, lhs, rhs, dtype)?;
    let shape = broadcast_shape(operation, condition.shape(), &shape)?;
    let (condition, lhs, rhs) =
        (view(Cow::Borrowed(condition), &shape)?, view(lhs, &shape)?, view(rhs, &shape)?);
    let readers = [Reader::new(&condition), Reader::new(&lhs), Reader::new(&rhs)];
    let buffer = with_compute!(dtype, C => {
        C::produce(dtype, shape.checked_len()?, &|start, out, scratch: &mut Scratch<C>| {
            let zero = C::default();
            let condition = readers[0].block(start, out.len(), &mut scratch.0);
            let left = readers[1].block(start, out.len(), &mut scratch.1);
            let right = readers[2].block(start, out.len(), &mut scratch.2);
            for (((out, &condition), &left), &right) in out.iter_mut().zip(condition).zip(left).zip(right) {
                *out = if condition == zero { right } else { left };
            }
        })?
    });
    Ok(Array::from_buffer(buffer, shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{bf16, f16};

    fn f32s(values: &[f32], shape: impl Into<Shape>) -> Array {
        Array::from_vec(values.to_vec(), shape).unwrap()
    }

    fn values(result: Result<Array>) -> Vec<f64> {
        result.unwrap().to_f64_vec().unwrap()
    }

    #[test]
    fn operands_broadcast_and_promote() {
        let column = f32s(&[1.0, 2.0], [2, 1]);
        let row = Array::from_vec(vec![f16::from_f32(10.0), f16::from_f32(20.0)], [2]).unwrap();
        let sum = add(&column, &row).unwrap();
        assert_eq!((sum.dtype(), sum.to_f64_vec().unwrap()), (DType::F32, vec![11.0, 21.0, 12.0, 22.0]));
        let brain = Array::scalar(bf16::from_f32(1.0));
        assert_eq!(mul(&row, &brain).unwrap().dtype(), DType::F32);
        assert_eq!(add(&Array::scalar(1.0_f32), &row).unwrap().dtype(), DType::F32, "a scalar promotes too");
        let error = add(&f32s(&[0.0; 3], [3]), &row).unwrap_err().to_string();
        assert!(error.starts_with("`add`: shapes [3] and [2] do not broadcast"), "{error}");
    }

    #[test]
    fn every_long_pattern_of_broadcasting_agrees_with_indexing() {
        let (rows, columns) = (37, 123);
        let full = f32s(&(0..rows * columns).map(|v| v as f32).collect::<Vec<_>>(), [rows, columns]);
        let row = f32s(&(0..columns).map(|v| v as f32).collect::<Vec<_>>(), [columns]);
        let column = f32s(&(0..rows).map(|v| v as f32).collect::<Vec<_>>(), [rows, 1]);
        let expected = |f: fn(usize, usize) -> usize| -> Vec<f64> {
            (0..rows).flat_map(|r| (0..columns).map(move |c| f(r, c) as f64)).collect()
        };
        assert_eq!(values(add(&full, &row)), expected(|r, c| r * 123 + c + c));
        assert_eq!(values(add(&column, &full)), expected(|r, c| r * 123 + c + r));
        assert_eq!(values(add(&column, &row)), expected(|r, c| r + c));
        assert_eq!(values(add(&full, &Array::scalar(1.0_f32))), expected(|r, c| r * 123 + c + 1));
        let transposed = full.transpose(0, 1).unwrap().cast(DType::F64).unwrap().transpose(0, 1).unwrap();
        assert_eq!(values(sub(&transposed, &full)), vec![0.0; rows * columns]);
    }

    #[test]
    fn integer_arithmetic_wraps_and_division_leaves_the_integers() {
        let (a, b) = (Array::scalar(200_u8), Array::scalar(100_u8));
        assert_eq!(add(&a, &b).unwrap().item::<u8>().unwrap(), 44);
        assert_eq!(sub(&b, &a).unwrap().item::<u8>().unwrap(), 156);
        assert_eq!(div(&a, &b).unwrap().item::<f32>().unwrap(), 2.0);
        assert_eq!(mul(&Array::scalar(i64::MAX), &Array::scalar(2_i64)).unwrap().item::<i64>().unwrap(), -2);
        assert!(add(&Array::scalar(true), &Array::scalar(true)).unwrap().item::<bool>().unwrap());
        assert!(sub(&Array::scalar(true), &Array::scalar(true)).is_err());
        assert_eq!(
            div(&Array::scalar(1_i32), &Array::scalar(0_i32)).unwrap().item_f64().unwrap(),
            f64::INFINITY
        );
    }

    #[test]
    fn half_products_are_rounded_once_and_scalars_are_not_rounded_before() {
        let half = Array::full([2], 0.1, DType::F16).unwrap();
        let exact = f16::from_f32(0.1).to_f64();
        assert_eq!(values(mul(&half, &half))[0], crate::dtype::round_to(DType::F16, exact * exact));
        let product = values(mul_scalar(&half, 1.0 / 3.0))[0];
        assert_eq!(product, crate::dtype::round_to(DType::F16, exact * f64::from(1.0_f32 / 3.0)));
        assert!(mul_scalar(&Array::scalar(3_i32), 0.5).is_err());
        assert_eq!(values(add_scalar(&Array::scalar(3_i32), 2.0)), [5.0]);
        assert_eq!(values(div_scalar(&Array::scalar(3_i32), 2.0)), [1.5]);
    }

    #[test]
    fn a_nan_wins_and_compares_unequal() {
        let nan = Array::scalar(f32::NAN);
        let one = Array::scalar(1.0_f32);
        for (a, b) in [(&nan, &one), (&one, &nan)] {
            assert!(values(maximum(a, b))[0].is_nan() && values(minimum(a, b))[0].is_nan());
            for comparison in [CmpOp::Eq, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge] {
                assert_eq!(values(compare(a, b, comparison)), [0.0]);
            }
            assert_eq!(values(compare(a, b, CmpOp::Ne)), [1.0]);
        }
        assert!(values(pow(&Array::scalar(-2.0_f32), &Array::scalar(0.5_f32)))[0].is_nan());
        assert_eq!(values(pow_scalar(&Array::scalar(-3.0_f32), 2.0)), [9.0]);
    }

    #[test]
    fn choosing_broadcasts_the_condition_too() {
        let condition = Array::from_vec(vec![true, false], [2, 1]).unwrap();
        let chosen = choose(&condition, &f32s(&[1.0, 2.0], [2]), &Array::scalar(0.0_f64)).unwrap();
        assert_eq!((chosen.dtype(), chosen.to_f64_vec().unwrap()), (DType::F64, vec![1.0, 2.0, 0.0, 0.0]));
        assert!(choose(&f32s(&[1.0], [1]), &condition, &condition).is_err());
    }

    #[test]
    fn a_product_of_views_too_large_for_memory_is_an_error() {
        let long = Array::scalar(1.0_f64).broadcast_to(&[1 << 35, 1].into()).unwrap();
        let wide = Array::scalar(1.0_f64).broadcast_to(&[1 << 24].into()).unwrap();
        assert!(matches!(add(&long, &wide), Err(Error::ShapeOverflow { .. })));
        let wide = Array::scalar(1.0_f64).broadcast_to(&[1 << 35].into()).unwrap();
        assert!(matches!(add(&long, &wide), Err(Error::ShapeOverflow { .. })));
    }
}
