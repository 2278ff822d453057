//! Softmax and its logarithm along an axis: computed in `f32` (`f64` for `f64`) and rounded once.

use super::compute::Compute;
use super::parallel::{PIECE, for_each_piece};
use super::read::Reader;
use super::real::Real;
use super::simd::{self, Loop};
use crate::cpu::array::Array;
use crate::cpu::buffer::allocate;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// `exp(x − max) / Σ exp(x − max)` along `axis`, or its logarithm, in the array's dtype.
pub(crate) fn softmax(array: &Array, axis: isize, log: bool) -> Result<Array> {
    let operation = if log { "log_softmax" } else { "softmax" };
    let axis = array.shape().axis(operation, axis)?;
    let dtype = array.dtype();
    if !dtype.is_float() {
        return Err(Error::DType { operation, expected: "a floating dtype".to_owned(), got: dtype });
    }
    let last = array.shape().len().saturating_sub(1) as isize;
    let rows = array.transpose(axis as isize, last)?;
    let extent = rows.shape().last().copied().unwrap_or(1);
    let buffer = if dtype == DType::F64 {
        f64::store(dtype, softmax_rows(&rows, extent, log)?)?
    } else {
        f32::store(dtype, softmax_rows(&rows, extent, log)?)?
    };
    Array::from_buffer(buffer, rows.shape().clone()).transpose(axis as isize, last)
}

fn softmax_rows<R: Real>(rows: &Array, extent: usize, log: bool) -> Result<Vec<R>> {
    let mut out = allocate::<R>(rows.element_count())?;
    let reader = Reader::new(rows);
    let piece = (PIECE / 8 / extent.max(1)).max(1) * extent;
    for_each_piece(&mut out, piece, &|first, piece| {
        for (row, out) in piece.chunks_mut(extent).enumerate() {
            reader.read(first + row * extent, out);
            if log { log_softmax_row(out) } else { softmax_row(out) }
        }
    });
    Ok(out)
}

fn softmax_row<R: Real>(row: &mut [R]) {
    let max = largest(row);
    let sum = halves(row, &|part| {
        let mut sum = R::ZERO;
        simd::run(ExpSum { part, max, sum: &mut sum });
        sum
    });
    let scale = R::ONE / sum;
    for x in row {
        *x = *x * scale;
    }
}

fn log_softmax_row<R: Real>(row: &mut [R]) {
    let max = largest(row);
    let sum = halves(row, &|part| {
        let mut copy = [R::ZERO; PART];
        let copy = &mut copy[..part.len()];
        copy.copy_from_slice(part);
        let mut sum = R::ZERO;
        simd::run(ExpSum { part: copy, max, sum: &mut sum });
        sum
    });
    let log_sum = sum.ln();
    for x in row {
        *x = (*x - max) - log_sum;
    }
}

/// How many elements are summed side by side.
const LANES: usize = 16;

/// How many elements are summed before sums are added in pairs, so that rounding errors grow with the logarithm of the
/// length.
const PART: usize = 64 * LANES;

fn halves<R: Real>(values: &mut [R], sum: &dyn Fn(&mut [R]) -> R) -> R {
    if values.len() <= PART {
        return sum(values);
    }
    let (left, right) = values.split_at_mut((values.len() / 2).next_multiple_of(LANES));
    halves(left, sum) + halves(right, sum)
}

/// The largest element; a NaN wins, so that the whole row becomes one.
fn largest<R: Real>(row: &[R]) -> R {
    let mut largest = row.first().copied().unwrap_or_default();
    simd::run(Largest { row, largest: &mut largest });
    largest
}

struct Largest<'a, R> {
    row: &'a [R],
    /// An element of it, to start with.
    largest: &'a mut R,
}

impl<R: Real> Loop for Largest<'_, R> {
    #[inline(always)]
    fn run(self) {
        let larger = |best: R, x: R| if x > best || x.is_nan() { x } else { best };
        let mut lanes = [*self.largest; LANES];
        let (chunks, rest) = self.row.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = larger(*lane, x);
            }
        }
        *self.largest = lanes.iter().chain(rest).fold(*self.largest, |best, &x| larger(best, x));
    }
}

/// `exp(x − max)` of each element, and their sum.
struct ExpSum<'a, R> {
    part: &'a mut [R],
    max: R,
    sum: &'a mut R,
}

impl<R: Real> Loop for ExpSum<'_, R> {
    #[inline(always)]
    fn run(self) {
        let mut lanes = [R::ZERO; LANES];
        let (chunks, rest) = self.part.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *x = (*x - self.max).exp();
                *lane = *lane + *x;
            }
        }
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *x = (*x - self.max).exp();
            *lane = *lane + *x;
        }
        *self.sum = pairwise_sum(lanes);
    }
}

/// The sum of all lanes, added in pairs.
#[inline(always)]
fn pairwise_sum<R: Real>(mut lanes: [R; LANES]) -> R {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = lanes[lane] + lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::f16;

    #[test]
    fn rows_sum_to_one_along_any_axis() {
        let array = Array::from_vec((0..24).map(f64::from).collect(), [2, 3, 4]).unwrap();
        for axis in 0..3 {
            let sums = super::super::sum(&softmax(&array, axis, false).unwrap(), Some(&[axis]), false, None)
                .unwrap();
            assert!(sums.to_f64_vec().unwrap().iter().all(|sum| (sum - 1.0).abs() < 1e-15));
        }
        let log = softmax(&array, 1, true).unwrap();
        let same = super::super::ln(&softmax(&array, 1, false).unwrap()).unwrap();
        let (log, same) = (log.to_f64_vec().unwrap(), same.to_f64_vec().unwrap());
        assert!(log.iter().zip(&same).all(|(a, b)| (a - b).abs() < 1e-14));
    }

    #[test]
    fn large_logits_do_not_overflow_and_half_is_rounded_once() {
        let array = Array::from_vec(vec![1000.0_f32, 1000.0], [2]).unwrap();
        assert_eq!(softmax(&array, -1, false).unwrap().to_f64_vec().unwrap(), [0.5, 0.5]);
        let log = softmax(&array.cast(DType::F16).unwrap(), -1, true).unwrap();
        assert_eq!(log.to_vec::<f16>().unwrap(), [f16::from_f64(-core::f64::consts::LN_2); 2]);
    }

    #[test]
    fn special_rows_follow_pytorch() {
        let inf = f32::INFINITY;
        let row = |values: &[f32]| {
            let array = Array::from_vec(values.to_vec(), [values.len()]).unwrap();
            softmax(&array, 0, false).unwrap().to_f64_vec().unwrap()
        };
        assert_eq!(row(&[0.0, -inf]), [1.0, 0.0]);
        assert!(row(&[0.0, inf]).iter().any(|value| value.is_nan()));
        assert!(row(&[-inf, -inf]).iter().all(|value| value.is_nan()));
        assert!(row(&[0.0, f32::NAN]).iter().all(|value| value.is_nan()));
        assert_eq!(row(&[]), [0.0; 0]);
        assert_eq!(softmax(&Array::scalar(3.0_f32), 0, false).unwrap().item::<f32>().unwrap(), 1.0);
        assert_eq!(softmax(&Array::zeros([0, 3], DType::F32).unwrap(), 1, true).unwrap().shape()[..], [0, 3]);
        assert!(softmax(&Array::scalar(3_i32), 0, false).is_err());
    }
}
