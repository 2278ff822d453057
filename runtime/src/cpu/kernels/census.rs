//! Conversion that counts what it does to the values, in the same pass.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::compute::{BLOCK, Compute};
use super::convert::Convert;
use super::parallel::{PIECE, for_each_piece};
use super::read::Reader;
use super::real::Real;
use super::simd::{self, Loop};
use crate::cpu::array::Array;
use crate::cpu::buffer::{Buffer, Store, allocate, with_type};
use crate::dtype::{Census, DType};
use crate::error::Result;

/// The same values in `dtype`, and what became of them; in its own dtype the array itself, and what they are. `None` in place
/// of a count if one of the dtypes is not floating-point.
pub(crate) fn cast_counting(array: &Array, dtype: DType) -> Result<(Array, Option<Census>)> {
    if !array.dtype().is_float() || !dtype.is_float() {
        return Ok((super::cast(array, dtype)?, None));
    }
    let wide = array.dtype() == DType::F64;
    if array.dtype() == dtype {
        let census = if wide { inspect::<f64>(array) } else { inspect::<f32>(array) };
        return Ok((array.clone(), Some(census)));
    }
    let (buffer, census) = match wide {
        true => with_type!(dtype, T => convert::<f64, T>(array, dtype)),
        false => with_type!(dtype, T => convert::<f32, T>(array, dtype)),
    }?;
    Ok((Array::from_buffer(buffer, array.shape().clone()), Some(census)))
}

/// What the values are.
fn inspect<C: Real + Limits>(array: &Array) -> Census {
    let (reader, len) = (Reader::new(array), array.element_count());
    let mut counts = vec![Census::default(); len.div_ceil(PIECE)];
    for_each_piece(&mut counts, 1, &|piece, counts| {
        let mut scratch = SmallVec::new();
        let end = ((piece + 1) * PIECE).min(len);
        for start in (piece * PIECE..end).step_by(BLOCK) {
            let block: &[C] = reader.block(start, BLOCK.min(end - start), &mut scratch);
            let mut found = [0_u32; 3];
            simd::run(Inspect { block, counts: &mut found });
            let [nan, infinite, zero] = found.map(u64::from);
            counts[0] += Census { values: block.len() as u64, nan, infinite, zero, ..Census::default() };
        }
    });
    sum(counts)
}

fn convert<C: Real + Limits, T: Convert<C>>(array: &Array, dtype: DType) -> Result<(Buffer, Census)> {
    let bounds = &Bounds::between(array.dtype(), dtype);
    let (reader, len) = (Reader::new(array), array.element_count());
    let mut out = allocate::<T>(len)?;
    let total = Mutex::new(Census::default());
    for_each_piece(&mut out, PIECE, &|first, piece| {
        let mut scratch = SmallVec::new();
        let mut after = SmallVec::<[C; 8]>::from_elem(C::default(), piece.len().min(BLOCK));
        let mut census = Census::default();
        for (index, out) in piece.chunks_mut(BLOCK).enumerate() {
            let before = reader.block(first + index * BLOCK, out.len(), &mut scratch);
            T::save(before, out);
            let after = &mut after[..out.len()];
            T::load(out, after);
            census += classify(before, after, bounds);
        }
        *total.lock().unwrap_or_else(PoisonError::into_inner) += census;
    });
    let census = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((Store::from_vec(out).into(), census))
}

fn sum(counts: Vec<Census>) -> Census {
    let mut total = Census::default();
    counts.into_iter().for_each(|census| total += census);
    total
}

/// What became of computed values that were stored as `to`.
pub(super) fn census_of<C: Real + Limits>(computed: &[C], stored: &[C], to: DType) -> Census {
    classify(computed, stored, &Bounds::between(C::DTYPE, to))
}

/// What can be compared.
pub(super) trait Limits: PartialOrd + Compute {
    const INFINITY: Self;
    fn abs(self) -> Self;
    fn of(value: f64) -> Self;
}

macro_rules! limits {
    ($($type:ident)*) => {$(
        impl Limits for $type {
            const INFINITY: Self = Self::INFINITY;

            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }

            fn of(value: f64) -> Self {
                value as Self
            }
        }
    )*};
}
limits! { f32 f64 }

/// Where classes of values begin.
struct Bounds<C> {
    /// The smallest normal number before and after.
    normal: (C, C),
    /// From here on a finite value becomes the largest number of a dtype that has no infinity.
    saturating: C,
}

impl<C: Limits> Bounds<C> {
    fn between(before: DType, after: DType) -> Self {
        // Halfway between 448 and the 480 that would follow.
        let saturating = if after == DType::F8E4M3 { C::of(464.0) } else { C::INFINITY };
        Self { normal: (C::of(smallest_normal(before)), C::of(smallest_normal(after))), saturating }
    }
}

fn smallest_normal(dtype: DType) -> f64 {
    let exponent = match dtype {
        DType::F8E4M3 => -6,
        DType::F8E5M2 | DType::F16 => -14,
        DType::F64 => -1022,
        _ => -126,
    };
    2.0_f64.powi(exponent)
}

/// Counts what is there, where nothing is converted.
struct Inspect<'a, C> {
    block: &'a [C],
    counts: &'a mut [u32; 3],
}

impl<C: Real + Limits> Loop for Inspect<'_, C> {
    #[inline(always)]
    fn run(self) {
        let (mut nan, mut infinite, mut zero) = (0_u32, 0_u32, 0_u32);
        for &value in self.block {
            let size = value.abs();
            nan += u32::from(value.is_nan());
            infinite += u32::from(size == C::INFINITY);
            zero += u32::from(size == C::ZERO);
        }
        *self.counts = [nan, infinite, zero];
    }
}

/// Counts a block.
fn classify<C: Real + Limits>(before: &[C], after: &[C], bounds: &Bounds<C>) -> Census {
    let mut counts = [0_u32; 7];
    simd::run(Classify { before, after, bounds, counts: &mut counts });
    let [nan, infinite, zero, overflowed, flushed, subnormal, rounded] = counts.map(u64::from);
    let values = before.len() as u64;
    Census { values, nan, infinite, zero, overflowed, flushed, subnormal, rounded }
}

/// The loop of [`classify`]. Without branches, so that it is done several values at a time.
struct Classify<'a, C> {
    before: &'a [C],
    after: &'a [C],
    bounds: &'a Bounds<C>,
    counts: &'a mut [u32; 7],
}

impl<C: Real + Limits> Loop for Classify<'_, C> {
    #[inline(always)]
    fn run(self) {
        let (mut nan, mut infinite, mut zero) = (0_u32, 0_u32, 0_u32);
        let (mut overflowed, mut flushed, mut subnormal, mut rounded) = (0_u32, 0_u32, 0_u32, 0_u32);
        let (normal_before, normal_after) = self.bounds.normal;
        for (&before, &after) in self.before.iter().zip(self.after) {
            let (size, result) = (before.abs(), after.abs());
            let is_nan = before.is_nan();
            let is_infinite = size == C::INFINITY;
            let finite = !is_nan & !is_infinite;
            let over = finite & ((result == C::INFINITY) | (size >= self.bounds.saturating));
            let gone = (result == C::ZERO) & (size > C::ZERO);
            let tiny = (result > C::ZERO) & (result < normal_after) & (size >= normal_before);
            nan += u32::from(is_nan);
            infinite += u32::from(is_infinite);
            zero += u32::from(size == C::ZERO);
            overflowed += u32::from(over);
            flushed += u32::from(gone);
            subnormal += u32::from(tiny);
            rounded += u32::from(finite & (before != after) & !over & !gone & !tiny);
        }
        *self.counts = [nan, infinite, zero, overflowed, flushed, subnormal, rounded];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(values: &[f64], from: DType, to: DType) -> Census {
        let array = Array::from_vec(values.to_vec(), [values.len()]).unwrap().cast(from).unwrap();
        let (converted, census) = cast_counting(&array, to).unwrap();
        let plain = array.cast(to).unwrap();
        let bits = |array: &Array| -> Vec<u64> {
            array.to_f64_vec().unwrap().into_iter().map(f64::to_bits).collect()
        };
        assert_eq!((converted.dtype(), bits(&converted)), (to, bits(&plain)), "{from} to {to}");
        census.unwrap()
    }

    #[test]
    fn every_value_is_counted_once_by_what_became_of_it() {
        let values = [
            f64::NAN,
            f64::INFINITY,
            -f64::INFINITY,
            0.0,
            -0.0,
            1e6,               // past the largest f16
            65519.0,           // rounds down to it
            1e-10,             // flushed
            2.0_f64.powi(-15), // subnormal, exactly
            3.0e-6,            // subnormal, rounded
            0.1,               // rounded
            1.5,               // exact
        ];
        let counted = census(&values, DType::F32, DType::F16);
        let expected = Census {
            values: 12,
            nan: 1,
            infinite: 2,
            zero: 2,
            overflowed: 1,
            flushed: 1,
            subnormal: 2,
            rounded: 2,
        };
        assert_eq!(counted, expected);
        assert_eq!(counted.changed(), 6);
    }

    #[test]
    fn a_dtype_without_infinities_overflows_by_saturating() {
        let counted = census(&[448.0, 463.0, 464.0, 1e6, f64::INFINITY], DType::F32, DType::F8E4M3);
        assert_eq!((counted.rounded, counted.overflowed, counted.infinite), (1, 2, 1));
    }

    #[test]
    fn widening_is_exact_and_no_conversion_counts_what_is_there() {
        for from in DType::FLOATS {
            for to in DType::FLOATS.into_iter().filter(|&to| from.fits_in(to)) {
                let counted = census(&[0.0, 1.0, -2.0, f64::NAN], from, to);
                let expected = Census { values: 4, nan: 1, zero: 1, ..Census::default() };
                assert_eq!(counted, expected, "{from} to {to}");
            }
        }
    }

    #[test]
    fn views_and_large_arrays_are_counted_whole() {
        let len = 3 * PIECE + 5;
        let array = Array::full([len], 0.1, DType::F32).unwrap();
        let (_, counted) = cast_counting(&array, DType::F16).unwrap();
        assert_eq!(counted, Some(Census { values: len as u64, rounded: len as u64, ..Census::default() }));
        let column = Array::from_vec(vec![1e-10_f64, 1.0], [2, 1]).unwrap();
        let wide = column.broadcast_to(&crate::shape::Shape::from([2, 3])).unwrap().transpose(0, 1).unwrap();
        let (converted, counted) = cast_counting(&wide, DType::F16).unwrap();
        assert_eq!(converted.to_f64_vec().unwrap(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        assert_eq!(counted, Some(Census { values: 6, flushed: 3, ..Census::default() }));
        let (_, none) = cast_counting(&Array::zeros([0], DType::F32).unwrap(), DType::F16).unwrap();
        assert_eq!(none, Some(Census::default()));
    }

    #[test]
    fn a_value_that_was_subnormal_before_is_not_said_to_have_become_so() {
        // 2⁻¹⁵ is subnormal in f16 and in f8e5m2.
        let counted = census(&[2.0_f64.powi(-15)], DType::F16, DType::F8E5M2);
        assert_eq!(counted, Census { values: 1, ..Census::default() });
    }
}
