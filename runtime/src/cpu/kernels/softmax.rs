//! Softmax and its logarithm along an axis: computed in `f32` (`f64` for `f64`) and rounded once.

use super::compute::Compute;
use super::parallel::{PIECE, for_each_piece};
use super::read::Reader;
use super::real::Real;
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

/// The largest element; a NaN wins, so that the whole row becomes one.
fn largest<R: Real>(row: &[R]) -> R {
    let start = row.first().copied().unwrap_or_default();
    row.iter().fold(start, |best, &x| if x > best || x.is_nan() { x } else { best })
}

fn softmax_row<R: Real>(row: &mut [R]) {
    let max = largest(row);
    for x in &mut *row {
        *x = (*x - max).exp();
    }
    let scale = R::ONE / pairwise_sum(row);
    for x in row {
        *x = *x * scale;
    }
}

fn log_softmax_row<R: Real>(row: &mut [R]) {
    let max = largest(row);
    for x in &mut *row {
        *x = *x - max;
    }
    let log_sum = blockwise_exp_sum(row).ln();
    for x in row {
        *x = *x - log_sum;
    }
}

fn blockwise_exp_sum<R: Real>(row: &[R]) -> R {
    if row.len() <= 64 {
        return row.iter().fold(R::ZERO, |sum, &x| sum + x.exp());
    }
    let (left, right) = row.split_at(row.len() / 2);
    blockwise_exp_sum(left) + blockwise_exp_sum(right)
}

/// A sum whose rounding errors grow with the logarithm of its length.
pub(super) fn pairwise_sum<R: Real>(values: &[R]) -> R {
    if values.len() <= 64 {
        return values.iter().fold(R::ZERO, |sum, &x| sum + x);
    }
    let (left, right) = values.split_at(values.len() / 2);
    pairwise_sum(left) + pairwise_sum(right)
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
