//! Reductions to fewer elements: sum and mean, and the folding that extrema use too.
//!
//! Elements are folded in blocks of fixed size whose results are folded in pairs, so that rounding errors grow with the
//! logarithm of their number and the result does not depend on threads. What comes out is rounded once.

use smallvec::SmallVec;

use super::compute::{BLOCK, Compute};
use super::parallel::{PIECE, for_each_piece};
use super::plan::{Plan, Split};
use super::read::Reader;
use super::simd::{self, Loop};
use crate::cpu::array::Array;
use crate::cpu::buffer::allocate;
use crate::dtype::{DType, bf16, f8e4m3, f8e5m2, f16};
use crate::error::{Error, Result};
use crate::shape::Shape;

impl Plan {
    /// Folds the elements; `combine` is associative but for rounding and `start` changes nothing.
    pub(crate) fn fold<C: Compute>(&self, start: C, combine: impl Fn(C, C) -> C + Sync) -> Result<Vec<C>> {
        let reader = Reader::new(&self.view);
        let Split { outer, extent, inner } = self.split;
        if extent == 0 || outer * inner == 0 {
            let mut results = allocate(outer * inner)?;
            results.fill(start);
            return Ok(results);
        }
        let fold = Fold { reader: &reader, split: self.split, start, combine: &combine };
        if inner == 1 { fold.rows() } else { fold.columns() }
    }
}

struct Fold<'a, C, F> {
    reader: &'a Reader<'a>,
    split: Split,
    start: C,
    combine: &'a F,
}

impl<C: Compute, F: Fn(C, C) -> C + Sync> Fold<'_, C, F> {
    /// The reduced elements are neighbours.
    fn rows(&self) -> Result<Vec<C>> {
        let Split { outer, extent, .. } = self.split;
        let mut results = allocate::<C>(outer)?;
        if outer == 1 {
            results[0] = self.long_row()?;
            return Ok(results);
        }
        for_each_piece(&mut results, (PIECE / extent).max(1), &|first, results| {
            let (mut scratch, mut partial) = (SmallVec::new(), SmallVec::<[C; 8]>::new());
            for (row, result) in results.iter_mut().enumerate() {
                partial.clear();
                for start in (0..extent).step_by(BLOCK) {
                    let len = BLOCK.min(extent - start);
                    let block = self.reader.block((first + row) * extent + start, len, &mut scratch);
                    partial.push(self.block(block));
                }
                *result = self.pairs(&partial);
            }
        });
        Ok(results)
    }

    /// One row only: its blocks are spread over threads.
    fn long_row(&self) -> Result<C> {
        let extent = self.split.extent;
        let mut partial = allocate::<C>(extent.div_ceil(BLOCK))?;
        for_each_piece(&mut partial, PIECE / BLOCK, &|first, partial| {
            let mut scratch = SmallVec::new();
            for (index, partial) in partial.iter_mut().enumerate() {
                let start = (first + index) * BLOCK;
                let block = self.reader.block(start, BLOCK.min(extent - start), &mut scratch);
                *partial = self.block(block);
            }
        });
        Ok(self.pairs(&partial))
    }

    fn block(&self, elements: &[C]) -> C {
        if elements.len() > 16 * LANES {
            let (left, right) = elements.split_at((elements.len() / 2).next_multiple_of(LANES));
            return (self.combine)(self.block(left), self.block(right));
        }
        if elements.len() < LANES {
            return elements.iter().fold(self.start, |a, &b| (self.combine)(a, b));
        }
        let mut result = self.start;
        simd::run(Lanes { elements, start: self.start, combine: self.combine, result: &mut result });
        result
    }

    fn pairs(&self, values: &[C]) -> C {
        match values {
            [] => self.start,
            [value] => *value,
            _ => {
                let (left, right) = values.split_at(values.len() / 2);
                (self.combine)(self.pairs(left), self.pairs(right))
            }
        }
    }

    /// The reduced elements lie `inner` apart: whole rows are combined, in groups of rows.
    fn columns(&self) -> Result<Vec<C>> {
        let Split { outer, extent, inner } = self.split;
        let group = extent.isqrt().max(128);
        let groups = extent.div_ceil(group);
        let mut partial = allocate::<C>(outer * groups * inner)?;
        partial.fill(self.start);
        let piece = (PIECE / group.min(extent)).max(inner.min(BLOCK));
        for_each_piece(&mut partial, piece, &|first, out| self.group_rows(first, out, group, groups));
        if groups == 1 {
            return Ok(partial);
        }
        let mut results = Vec::with_capacity(outer * inner);
        for groups in partial.chunks_mut(groups * inner) {
            let (sum, rest) = groups.split_at_mut(inner);
            for group in rest.chunks(inner) {
                self.combine_to(sum, group);
            }
            results.extend_from_slice(sum);
        }
        Ok(results)
    }

    /// Elements of the partial results from the `first`th on; they are numbered by outer position, group and column.
    fn group_rows(&self, first: usize, mut out: &mut [C], group: usize, groups: usize) {
        let Split { extent, inner, .. } = self.split;
        let mut scratch = SmallVec::new();
        let mut position = first;
        while !out.is_empty() {
            let (unit, column) = (position / inner, position % inner);
            let (outer, nth) = (unit / groups, unit % groups);
            let width = (inner - column).min(out.len()).min(BLOCK);
            let (sums, rest) = out.split_at_mut(width);
            for row in nth * group..((nth + 1) * group).min(extent) {
                let start = (outer * extent + row) * inner + column;
                self.combine_to(sums, self.reader.block(start, width, &mut scratch));
            }
            out = rest;
            position += width;
        }
    }

    fn combine_to(&self, own: &mut [C], other: &[C]) {
        for (own, &other) in own.iter_mut().zip(other) {
            *own = (self.combine)(*own, other);
        }
    }
}

/// How many elements are folded side by side.
const LANES: usize = 16;

/// Folds elements side by side, and the lanes in pairs.
struct Lanes<'a, C, F> {
    elements: &'a [C],
    start: C,
    combine: &'a F,
    result: &'a mut C,
}

impl<C: Compute, F: Fn(C, C) -> C> Loop for Lanes<'_, C, F> {
    #[inline(always)]
    fn run(self) {
        let mut lanes = [self.start; LANES];
        let (chunks, rest) = self.elements.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &element) in lanes.iter_mut().zip(chunk) {
                *lane = (self.combine)(*lane, element);
            }
        }
        for (lane, &element) in lanes.iter_mut().zip(rest) {
            *lane = (self.combine)(*lane, element);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] = (self.combine)(lanes[2 * lane], lanes[2 * lane + 1]);
            }
            width /= 2;
        }
        *self.result = lanes[0];
    }
}

/// The dtype of a sum when none is chosen: floats keep theirs, all else is `i64`.
fn sum_dtype(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::I64 }
}

/// The sum over `axes` in `dtype` (default: floats their own, all else `i64`).
///
/// 8- and 16-bit floats are summed in `f32`, integers in `i64`; the result is rounded once.
pub(crate) fn sum(
    array: &Array,
    axes: Option<&[isize]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Array> {
    let plan = Plan::new("sum", array, axes, keepdim)?;
    sum_planned(plan, array.dtype(), dtype.unwrap_or_else(|| sum_dtype(array.dtype())))
}

fn sum_planned(mut plan: Plan, own: DType, dtype: DType) -> Result<Array> {
    if own.is_float() && !dtype.is_float() {
        plan.view = plan.view.cast(dtype)?;
    }
    let shape = plan.shape.clone();
    let buffer = if !plan.view.dtype().is_float() {
        i64::store(dtype, plan.fold(0_i64, Compute::plus)?)?
    } else if own == DType::F64 || dtype == DType::F64 {
        f64::store(dtype, plan.fold(0.0_f64, Compute::plus)?)?
    } else {
        f32::store(dtype, plan.fold(0.0_f32, Compute::plus)?)?
    };
    Ok(Array::from_buffer(buffer, shape))
}

/// The sum over `axes` in the array's own floating dtype, to which every partial sum is rounded.
pub(crate) fn sum_rounding(array: &Array, axes: Option<&[isize]>, keepdim: bool) -> Result<Array> {
    let plan = Plan::new("sum", array, axes, keepdim)?;
    let sums = match array.dtype() {
        DType::F16 => plan.fold(0.0, |a: f32, b| f16::from_f32(a + b).to_f32())?,
        DType::BF16 => plan.fold(0.0, |a: f32, b| bf16::from_f32(a + b).to_f32())?,
        DType::F8E4M3 => plan.fold(0.0, |a: f32, b| f8e4m3::from_f32(a + b).to_f32())?,
        DType::F8E5M2 => plan.fold(0.0, |a: f32, b| f8e5m2::from_f32(a + b).to_f32())?,
        own => return sum_planned(plan, own, own),
    };
    Ok(Array::from_buffer(f32::store(array.dtype(), sums)?, plan.shape))
}

/// The mean over `axes` in `dtype`, which must be floating (default: the array's own); rounded once.
pub(crate) fn mean(
    array: &Array,
    axes: Option<&[isize]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Array> {
    let (own, dtype) = (array.dtype(), dtype.unwrap_or(array.dtype()));
    if !dtype.is_float() {
        let expected = "a floating dtype, or one chosen for the result".to_owned();
        return Err(Error::DType { operation: "mean", expected, got: dtype });
    }
    let plan = Plan::new("mean", array, axes, keepdim)?;
    let count = plan.count();
    let buffer = if own.is_float() && own != DType::F64 && dtype != DType::F64 {
        let mut sums = plan.fold(0.0_f32, Compute::plus)?;
        sums.iter_mut().for_each(|sum| *sum /= count as f32);
        f32::store(dtype, sums)?
    } else {
        let mut sums = plan.fold(0.0_f64, Compute::plus)?;
        sums.iter_mut().for_each(|sum| *sum /= count as f64);
        f64::store(dtype, sums)?
    };
    Ok(Array::from_buffer(buffer, plan.shape))
}

/// `array` summed to `shape`, from which it could have been broadcast: the adjoint of broadcasting.
///
/// Formed in the accumulation dtype and rounded once.
pub(crate) fn sum_to_shape(array: &Array, shape: &Shape) -> Result<Array> {
    if array.shape() == shape {
        return Ok(array.clone());
    }
    if !shape.broadcasts_to(array.shape()) {
        let problem = format!("shape {} cannot be summed to {shape}", array.shape());
        return Err(Error::Shape { operation: "sum_to_shape", problem });
    }
    let added = array.shape().len() - shape.len();
    let reduced: SmallVec<[bool; 6]> = (array.shape().iter().enumerate())
        .map(|(axis, &extent)| axis < added || (shape.get(axis - added) == Some(&1) && extent != 1))
        .collect();
    let plan = Plan::of_mask(array, &reduced, true);
    sum_planned(plan, array.dtype(), array.dtype())?.reshaped(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(shape: impl Into<Shape>) -> Array {
        let shape = shape.into();
        Array::from_vec((0..shape.element_count()).map(|v| v as f32).collect(), shape).unwrap()
    }

    fn naive_sum(array: &Array, axes: &[usize]) -> Vec<f64> {
        let (shape, values) = (array.shape(), array.to_f64_vec().unwrap());
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
        let mut sums = vec![0.0; kept.iter().map(|&axis| shape[axis]).product()];
        for (position, value) in values.iter().enumerate() {
            let coordinate =
                |axis: usize| position / shape[axis + 1..].iter().product::<usize>() % shape[axis];
            sums[kept.iter().fold(0, |at, &axis| at * shape[axis] + coordinate(axis))] += value;
        }
        sums
    }

    #[test]
    fn sums_over_any_axes_agree_with_adding_one_by_one() {
        let array = counting([3, 4, 1, 5]);
        for axes in
            [&[0][..], &[1], &[3], &[0, 1], &[1, 3], &[0, 3], &[0, 1, 2, 3], &[2], &[], &[0, 2], &[1, 2, 3]]
        {
            let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize - 4).collect();
            for view in [array.clone(), array.permute(&[2, 1, 0, 3]).unwrap().transpose(0, 2).unwrap()] {
                let sum = sum(&view, Some(&signed), false, None).unwrap();
                assert_eq!(sum.to_f64_vec().unwrap(), naive_sum(&view, axes), "{axes:?}");
                assert_eq!(sum.shape().len(), 4 - axes.len());
            }
        }
        let kept = sum(&array, Some(&[1]), true, None).unwrap();
        assert_eq!(kept.shape()[..], [3, 1, 1, 5]);
    }

    #[test]
    fn long_sums_are_accurate_in_f32_and_the_same_along_every_path() {
        let n = 3_000_000;
        let array = Array::full([n], 0.1, DType::F32).unwrap();
        let exact = f64::from(0.1_f32) * n as f64;
        let close = |value: f64| ((value - exact) / exact).abs() < 2.0_f64.powi(-23);
        assert!(close(sum(&array, None, false, None).unwrap().item_f64().unwrap()));
        let columns = array.reshape([n / 2, 2]).unwrap();
        let sums = sum(&columns, Some(&[0]), false, Some(DType::F64)).unwrap();
        assert!(close(sums.to_f64_vec().unwrap().iter().sum()));
        let sums = sum(&columns, Some(&[0]), false, None).unwrap().to_f64_vec().unwrap();
        assert!(((sums[0] - exact / 2.0) / exact).abs() < 1e-5);
    }

    #[test]
    fn small_floats_are_summed_in_f32_and_rounded_once() {
        let halves = Array::from_vec(vec![f16::from_f32(1.0); 5000], [5000]).unwrap();
        assert_eq!(sum(&halves, None, false, None).unwrap().item::<f16>().unwrap().to_f64(), 5000.0);
        let brains = Array::from_vec(vec![bf16::from_f32(1.0); 300], [300]).unwrap();
        // 300 is no bf16 value; chosen wider it is not rounded.
        assert_eq!(sum(&brains, None, false, None).unwrap().item_f64().unwrap(), 300.0);
        assert_eq!(sum(&brains, Some(&[0]), false, Some(DType::F32)).unwrap().item::<f32>().unwrap(), 300.0);
        let large = Array::from_vec(vec![f16::MAX; 2], [2]).unwrap();
        assert_eq!(mean(&large, None, false, None).unwrap().item::<f16>().unwrap(), f16::MAX);
        assert_eq!(sum(&large, None, false, Some(DType::F32)).unwrap().item_f64().unwrap(), 131_008.0);
    }

    #[test]
    fn integers_are_summed_as_i64() {
        let bytes = Array::from_vec(vec![255_u8; 3], [3]).unwrap();
        assert_eq!(sum(&bytes, None, false, None).unwrap().item::<i64>().unwrap(), 765);
        assert_eq!(sum(&bytes, None, false, Some(DType::U8)).unwrap().item::<u8>().unwrap(), 253);
        let flags = Array::from_vec(vec![true, true, false], [3]).unwrap();
        assert_eq!(sum(&flags, None, false, None).unwrap().item::<i64>().unwrap(), 2);
        assert!(mean(&bytes, None, false, None).is_err());
        assert_eq!(mean(&bytes, None, false, Some(DType::F32)).unwrap().item::<f32>().unwrap(), 255.0);
    }

    #[test]
    fn sums_of_nothing_are_zero_and_means_nan() {
        let empty = Array::zeros([0, 3], DType::F32).unwrap();
        assert_eq!(sum(&empty, None, false, None).unwrap().item::<f32>().unwrap(), 0.0);
        assert_eq!(sum(&empty, Some(&[0]), false, None).unwrap().to_f64_vec().unwrap(), [0.0; 3]);
        assert_eq!(sum(&empty, Some(&[1]), false, None).unwrap().to_f64_vec().unwrap(), [0.0; 0]);
        assert!(mean(&empty, None, false, None).unwrap().item::<f32>().unwrap().is_nan());
    }

    #[test]
    fn a_scalar_has_an_axis_to_reduce_and_axes_are_named_once() {
        let scalar = Array::scalar(2.0_f32);
        assert_eq!(sum(&scalar, Some(&[-1]), true, None).unwrap().item::<f32>().unwrap(), 2.0);
        assert!(sum(&scalar, Some(&[1]), false, None).is_err());
        assert!(sum(&counting([2, 2]), Some(&[0, -2]), false, None).is_err());
    }

    #[test]
    fn sum_to_shape_undoes_broadcasting() {
        let array = counting([2, 3, 4]);
        let to = |shape: &[usize]| sum_to_shape(&array, &Shape::from(shape));
        assert_eq!(to(&[3, 1]).unwrap().to_f64_vec().unwrap(), naive_sum(&array, &[0, 2]));
        assert_eq!(to(&[]).unwrap().to_f64_vec().unwrap(), [276.0]);
        assert_eq!(to(&[1, 3, 4]).unwrap().shape()[..], [1, 3, 4]);
        assert!(to(&[2]).is_err() && to(&[1, 1, 1, 1]).is_err());
    }
}
