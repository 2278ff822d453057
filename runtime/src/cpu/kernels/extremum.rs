//! Largest and smallest elements, and where they are. A NaN is larger and smaller than everything, as in PyTorch.

use super::compute::{Compute, with_compute};
use super::index::gather_along;
use super::parallel::{PIECE, for_each_piece};
use super::plan::{Plan, Split};
use super::read::Reader;
use crate::cpu::array::Array;
use crate::cpu::buffer::{Store, allocate};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Which end of the order is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Max,
    Min,
}

impl Extreme {
    const fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// Whether `candidate` takes the place of `best`; the first of equals stays.
    fn beats<C: Compute>(self, candidate: C, best: C) -> bool {
        match self {
            _ if candidate.is_nan() => !best.is_nan(),
            Self::Max => candidate > best,
            Self::Min => candidate < best,
        }
    }
}

fn nothing_there(operation: &'static str, shape: &Shape) -> Error {
    let problem = format!("there is no element to choose along an axis of extent 0 of shape {shape}");
    Error::Shape { operation, problem }
}

/// The largest or smallest element over `axes` (`None`: all), in the array's dtype.
pub(crate) fn extreme(array: &Array, axes: Option<&[isize]>, keepdim: bool, which: Extreme) -> Result<Array> {
    let plan = Plan::new(which.name(), array, axes, keepdim)?;
    if plan.count() == 0 {
        return Err(nothing_there(which.name(), array.shape()));
    }
    let buffer = with_compute!(array.dtype(), C => C::store(array.dtype(), fold::<C>(&plan, which)?)?);
    Ok(Array::from_buffer(buffer, plan.shape().clone()))
}

/// Starts from the least of all values: infinities as floats, the bounds as integers.
fn fold<C: Compute>(plan: &Plan, which: Extreme) -> Result<Vec<C>> {
    // One comparison a closure, so that the compiler vectorizes them. A NaN stays: nothing is greater or less.
    match which {
        Extreme::Max => {
            plan.fold(C::from_f64(f64::NEG_INFINITY), |best, x| if x > best || x.is_nan() { x } else { best })
        }
        Extreme::Min => {
            plan.fold(C::from_f64(f64::INFINITY), |best, x| if x < best || x.is_nan() { x } else { best })
        }
    }
}

/// Where along `axis` (`None`: in row-major order) the largest or smallest element is, the first of equals; `i64`.
pub(crate) fn arg_extreme(
    array: &Array,
    axis: Option<isize>,
    keepdim: bool,
    which: Extreme,
) -> Result<Array> {
    let operation = if which == Extreme::Max { "argmax" } else { "argmin" };
    let whole = Split { outer: 1, extent: array.element_count(), inner: 1 };
    let (split, kept) = match axis {
        None => (whole, array.shape().iter().map(|_| 1).collect()),
        Some(axis) => {
            let axis = array.shape().axis(operation, axis)?;
            (Split::at(array.shape(), axis), array.shape().with_extent(axis, 1))
        }
    };
    if split.extent == 0 {
        return Err(nothing_there(operation, array.shape()));
    }
    let mut positions = allocate::<i64>(split.outer * split.inner)?;
    with_compute!(array.dtype(), C => find::<C>(array, split, which, &mut positions));
    let shape = match axis {
        _ if keepdim => kept,
        None => Shape::scalar(),
        Some(axis) => array.shape().without_axis(array.shape().axis(operation, axis)?),
    };
    Ok(Array::from_buffer(Store::from_vec(positions).into(), shape))
}

fn find<C: Compute>(array: &Array, split: Split, which: Extreme, positions: &mut [i64]) {
    let Split { extent, inner, .. } = split;
    let reader = Reader::new(array);
    let rows = (PIECE / (extent * inner.max(1)).max(1)).max(1);
    for_each_piece(positions, rows * inner, &|first, positions| {
        let mut scratch = smallvec::SmallVec::new();
        let mut best = vec![C::default(); inner];
        for (row, positions) in positions.chunks_mut(inner).enumerate() {
            let start = (first / inner + row) * extent * inner;
            for nth in 0..extent {
                let candidates = reader.block(start + nth * inner, inner, &mut scratch);
                for ((position, best), &candidate) in positions.iter_mut().zip(&mut best).zip(candidates) {
                    if nth == 0 || which.beats(candidate, *best) {
                        (*position, *best) = (nth as i64, candidate);
                    }
                }
            }
        }
    });
}

/// The largest or smallest elements along `axis`, and where they are.
pub(crate) fn extreme_along(
    array: &Array,
    axis: isize,
    keepdim: bool,
    which: Extreme,
) -> Result<(Array, Array)> {
    let axis = array.shape().axis(which.name(), axis)?;
    if array.shape().is_empty() {
        return Ok((array.clone(), Array::scalar(0_i64)));
    }
    let positions = arg_extreme(array, Some(axis as isize), true, which)?;
    let values = gather_along(array, axis as isize, &positions)?;
    if keepdim {
        return Ok((values, positions));
    }
    let shape = array.shape().without_axis(axis);
    Ok((values.reshaped(&shape)?, positions.reshaped(&shape)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn array(values: &[f32], shape: impl Into<Shape>) -> Array {
        Array::from_vec(values.to_vec(), shape).unwrap()
    }

    #[test]
    fn the_first_of_equals_is_found_along_every_axis() {
        let values = array(&[1.0, 5.0, 5.0, 7.0, 2.0, 7.0], [2, 3]);
        let argmax = |axis| arg_extreme(&values, axis, false, Extreme::Max).unwrap().to_vec::<i64>().unwrap();
        assert_eq!(argmax(Some(1)), [1, 0]);
        assert_eq!(argmax(Some(0)), [1, 0, 1]);
        assert_eq!(argmax(None), [3]);
        let (smallest, at) = extreme_along(&values, -1, true, Extreme::Min).unwrap();
        assert_eq!(
            (smallest.to_f64_vec().unwrap(), at.to_f64_vec().unwrap()),
            (vec![1.0, 2.0], vec![0.0, 1.0])
        );
        assert_eq!(smallest.shape()[..], [2, 1]);
    }

    #[test]
    fn a_nan_wins() {
        let values = array(&[1.0, f32::NAN, f32::INFINITY, f32::NAN], [4]);
        for which in [Extreme::Max, Extreme::Min] {
            assert!(extreme(&values, None, false, which).unwrap().item::<f32>().unwrap().is_nan());
            assert_eq!(arg_extreme(&values, None, false, which).unwrap().item::<i64>().unwrap(), 1);
        }
    }

    #[test]
    fn integers_and_infinities_have_extremes_too() {
        let bytes = Array::from_vec(vec![3_i8, -128, 127], [3]).unwrap();
        assert_eq!(extreme(&bytes, None, false, Extreme::Min).unwrap().item::<i8>().unwrap(), -128);
        let low = array(&[f32::NEG_INFINITY; 20], [20]);
        assert_eq!(
            extreme(&low, None, false, Extreme::Max).unwrap().item::<f32>().unwrap(),
            f32::NEG_INFINITY
        );
        let long = Array::from_vec((0..5000_i64).collect(), [5000]).unwrap().cast(DType::F32).unwrap();
        assert_eq!(extreme(&long, Some(&[0]), true, Extreme::Max).unwrap().item::<f32>().unwrap(), 4999.0);
    }

    #[test]
    fn there_is_no_extreme_of_nothing() {
        let empty = Array::zeros([0, 3], DType::F32).unwrap();
        assert!(extreme(&empty, None, false, Extreme::Max).is_err());
        assert!(arg_extreme(&empty, Some(0), false, Extreme::Max).is_err());
        assert!(extreme_along(&empty, 0, false, Extreme::Max).is_err());
        assert_eq!(extreme(&empty, Some(&[1]), false, Extreme::Max).unwrap().shape()[..], [0]);
        assert_eq!(arg_extreme(&empty, Some(1), false, Extreme::Max).unwrap().shape()[..], [0]);
        assert!(arg_extreme(&Array::scalar(1.0_f32), Some(0), false, Extreme::Max).is_ok());
    }
}
