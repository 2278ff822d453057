//! Selection by position: `take`, `index_select`, `gather`, their adjoints, `one_hot`; and joining with `cat`.
//!
//! Indices are integers of any dtype, counted from 0; negative ones are an error, as in PyTorch.

use super::compute::{Compute, add_to, with_compute};
use super::parallel::{PIECE, for_each_piece};
use super::plan::Split;
use super::read::Reader;
use crate::cpu::array::Array;
use crate::cpu::buffer::{Store, allocate, free, with_store, with_type, zeroed};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The elements at `positions` of `axis`; all of them exist.
pub(crate) fn take(array: &Array, axis: usize, positions: &[usize]) -> Result<Array> {
    let split = Split::at(array.shape(), axis);
    let shape = array.shape().with_extent(axis, positions.len());
    let array = array.contiguous()?;
    let offset = array.layout().offset();
    let buffer = with_store!(array.buffer(), store => {
        let from = &store.as_slice()[offset..];
        let mut out = allocate(shape.element_count())?;
        let rows = PIECE.div_ceil(split.inner.max(1));
        for_each_piece(&mut out, rows * split.inner, &|start, piece| {
            let first = start / split.inner.max(1);
            for (row, out) in piece.chunks_mut(split.inner.max(1)).enumerate() {
                let (outer, nth) = ((first + row) / positions.len(), (first + row) % positions.len());
                let start = (outer * split.extent + positions[nth]) * split.inner;
                out.copy_from_slice(&from[start..start + split.inner]);
            }
        });
        Store::from_vec(out).into()
    });
    Ok(Array::from_buffer(buffer, shape))
}

/// `index`, whose dtype must be an integer, as positions below `extent`.
fn positions(operation: &'static str, index: &Array, extent: usize, shape: &Shape) -> Result<Vec<usize>> {
    if !index.dtype().is_integer() {
        let expected = "an index of an integer dtype".to_owned();
        return Err(Error::DType { operation, expected, got: index.dtype() });
    }
    let mut raw = allocate::<i64>(index.element_count())?;
    Reader::new(index).read(0, &mut raw);
    raw.into_iter()
        .map(|index| match usize::try_from(index) {
            Ok(position) if position < extent => Ok(position),
            _ => Err(Error::IndexOutOfRange { operation, index, extent, shape: shape.clone() }),
        })
        .collect()
}

fn axis_of(operation: &'static str, shape: &Shape, axis: isize) -> Result<usize> {
    let axis = shape.axis(operation, axis)?;
    if shape.is_empty() {
        let problem = "a scalar has no axis to select from".to_owned();
        return Err(Error::Shape { operation, problem });
    }
    Ok(axis)
}

/// The slices of `axis` that the 1-d `index` names; the result has as many as the index has elements.
pub(crate) fn index_select(array: &Array, axis: isize, index: &Array) -> Result<Array> {
    let operation = "index_select";
    let axis = axis_of(operation, array.shape(), axis)?;
    if index.shape().len() > 1 {
        let problem = format!("the index must have one dimension, got shape {}", index.shape());
        return Err(Error::Shape { operation, problem });
    }
    let extent = array.shape().get(axis).copied().unwrap_or(0);
    let positions = positions(operation, index, extent, array.shape())?;
    array.shape().with_extent(axis, positions.len()).checked_len()?;
    take(array, axis, &positions)
}

/// The adjoint of [`index_select`]: adds slice `i` of `grad` to slice `index[i]` of zeros of extent `extent`.
///
/// Sums are formed in the accumulation dtype and rounded once.
pub(crate) fn index_add(grad: &Array, axis: isize, index: &Array, extent: usize) -> Result<Array> {
    let operation = "index_add";
    let axis = axis_of(operation, grad.shape(), axis)?;
    if index.shape().len() > 1 {
        let problem = format!("the index must have one dimension, got shape {}", index.shape());
        return Err(Error::Shape { operation, problem });
    }
    let positions = positions(operation, index, extent, grad.shape())?;
    let split = Split::at(grad.shape(), axis);
    if positions.len() != split.extent {
        let problem = format!("{} indices for shape {}", positions.len(), grad.shape());
        return Err(Error::Shape { operation, problem });
    }
    let shape = grad.shape().with_extent(axis, extent);
    let len = shape.checked_len()?;
    if grad.element_count() == 0 {
        return Array::zeros(shape, grad.dtype());
    }
    let buffer = with_compute!(grad.dtype(), C => {
        let mut sums = zeroed::<C>(len)?;
        let mut row = vec![C::default(); split.inner];
        let reader = Reader::new(grad);
        for outer in 0..split.outer {
            for (nth, &position) in positions.iter().enumerate() {
                reader.read((outer * split.extent + nth) * split.inner, &mut row);
                let to = (outer * extent + position) * split.inner;
                add_to(&mut sums[to..to + split.inner], &row);
            }
        }
        C::store(grad.dtype(), sums)?
    });
    Ok(Array::from_buffer(buffer, shape))
}

/// `out[i][j][k] = array[i][index[i][j][k]][k]` for `axis` 1 of three, and so on; ranks agree, and `index` is nowhere
/// larger than `array` but along `axis`.
pub(crate) fn gather_along(array: &Array, axis: isize, index: &Array) -> Result<Array> {
    let operation = "gather";
    let from = Positions::new(operation, array.shape(), axis, index)?;
    let array = array.contiguous()?;
    let offset = array.layout().offset();
    let buffer = with_store!(array.buffer(), store => {
        let elements = &store.as_slice()[offset..];
        let out = from.0.iter().map(|&position| elements[position]).collect();
        Store::from_vec(out).into()
    });
    Ok(Array::from_buffer(buffer, index.shape().clone()))
}

/// The adjoint of [`gather_along`]: adds each element of `grad` where `index` took it from, to zeros of `shape`.
///
/// Sums are formed in the accumulation dtype and rounded once.
pub(crate) fn scatter_add(shape: &Shape, axis: isize, index: &Array, grad: &Array) -> Result<Array> {
    let operation = "scatter_add";
    if grad.shape() != index.shape() {
        let problem = format!("values of shape {} for an index of shape {}", grad.shape(), index.shape());
        return Err(Error::Shape { operation, problem });
    }
    let len = shape.checked_len()?;
    let to = Positions::new(operation, shape, axis, index)?;
    let buffer = with_compute!(grad.dtype(), C => {
        let mut values = allocate::<C>(grad.element_count())?;
        Reader::new(grad).read(0, &mut values);
        let mut sums = zeroed::<C>(len)?;
        for (&position, value) in to.0.iter().zip(&values) {
            add_to(&mut sums[position..=position], core::slice::from_ref(value));
        }
        free(values);
        C::store(grad.dtype(), sums)?
    });
    Ok(Array::from_buffer(buffer, shape.clone()))
}

/// Where in a row-major array of some shape each element of an index points.
struct Positions(Vec<usize>);

impl Positions {
    fn new(operation: &'static str, shape: &Shape, axis: isize, index: &Array) -> Result<Self> {
        let axis = axis_of(operation, shape, axis)?;
        let fits = |(i, (&wanted, &extent)): (usize, (&usize, &usize))| i == axis || wanted <= extent;
        let ranks_agree = index.shape().len() == shape.len();
        if !ranks_agree || !index.shape().iter().zip(shape.iter()).enumerate().all(fits) {
            let problem =
                format!("an index of shape {} does not fit shape {shape} along axis {axis}", index.shape());
            return Err(Error::Shape { operation, problem });
        }
        let split = Split::at(shape, axis);
        let along = positions(operation, index, split.extent, shape)?;
        if along.is_empty() {
            return Ok(Self(along));
        }
        // Each element's own position, with that along `axis` left at zero, …
        let mut base = vec![0_usize; 1];
        let mut stride = shape.iter().product::<usize>();
        for (i, (&wanted, &extent)) in index.shape().iter().zip(shape.iter()).enumerate() {
            stride /= extent.max(1);
            let step = if i == axis { 0 } else { stride };
            base = base.iter().flat_map(|&start| (0..wanted).map(move |nth| start + nth * step)).collect();
        }
        // … and then the one that the index names.
        Ok(Self(base.iter().zip(&along).map(|(&base, &along)| base + along * split.inner).collect()))
    }
}

/// One more dimension of extent `classes`: 1 at the class that `index` names, 0 elsewhere.
pub(crate) fn one_hot(index: &Array, classes: usize, dtype: DType) -> Result<Array> {
    let shape: Shape = index.shape().iter().copied().chain([classes]).collect();
    let len = shape.checked_len()?;
    let positions = positions("one_hot", index, classes, &shape)?;
    let buffer = with_type!(dtype, T => {
        let one = <T as crate::dtype::Element>::from_f64(1.0);
        let mut out = zeroed::<T>(len)?;
        for (row, position) in positions.into_iter().enumerate() {
            out[row * classes + position] = one;
        }
        Store::from_vec(out).into()
    });
    Ok(Array::from_buffer(buffer, shape))
}

/// Arrays of one dtype joined along `axis`; they agree in all other extents.
pub(crate) fn cat(arrays: &[Array], axis: isize) -> Result<Array> {
    let operation = "cat";
    let Some(first) = arrays.first() else {
        return Err(Error::Argument { operation, problem: "there is nothing to join".to_owned() });
    };
    let axis = axis_of(operation, first.shape(), axis)?;
    let mut extent = 0_usize;
    for array in arrays {
        let own = array.shape().get(axis).copied().unwrap_or(0);
        if array.shape().with_extent(axis, 0) != first.shape().with_extent(axis, 0) {
            let problem =
                format!("shapes {} and {} differ in another axis than {axis}", first.shape(), array.shape());
            return Err(Error::Shape { operation, problem });
        }
        extent = extent.saturating_add(own);
    }
    let shape = first.shape().with_extent(axis, extent);
    let len = shape.checked_len()?;
    let dtype = arrays.iter().fold(first.dtype(), |dtype, array| dtype.promote(array.dtype()));
    if len == 0 {
        return Array::zeros(shape, dtype);
    }
    let outer = Split::at(&shape, axis).outer;
    let parts = arrays.iter().map(|array| array.cast(dtype)?.contiguous()).collect::<Result<Vec<_>>>()?;
    let buffer = with_type!(dtype, T => {
        let mut out = allocate::<T>(len)?;
        out.clear();
        for row in 0..outer {
            for part in &parts {
                let (start, count) = (part.layout().offset(), part.element_count() / outer);
                let elements = part.buffer().slice::<T>().unwrap_or_default();
                out.extend_from_slice(&elements[start + row * count..start + (row + 1) * count]);
            }
        }
        Store::from_vec(out).into()
    });
    Ok(Array::from_buffer(buffer, shape))
}

/// Zeros before and behind, along `axis`.
pub(crate) fn pad(array: &Array, axis: isize, before: usize, after: usize) -> Result<Array> {
    let operation = "pad";
    let index = axis_of(operation, array.shape(), axis)?;
    let zeros = |extent| Array::zeros(array.shape().with_extent(index, extent), array.dtype());
    cat(&[zeros(before)?, array.clone(), zeros(after)?], index as isize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::f16;

    fn indices(values: &[i64], shape: impl Into<Shape>) -> Array {
        Array::from_vec(values.to_vec(), shape).unwrap()
    }

    fn counting(shape: impl Into<Shape>) -> Array {
        let shape = shape.into();
        Array::from_vec((0..shape.element_count()).map(|v| v as f32).collect(), shape).unwrap()
    }

    #[test]
    fn index_select_takes_slices_and_index_add_gives_them_back() {
        let array = counting([2, 3]);
        let index = indices(&[2, 0, 2], [3]);
        let taken = index_select(&array, 1, &index).unwrap();
        assert_eq!(taken.to_f64_vec().unwrap(), [2.0, 0.0, 2.0, 5.0, 3.0, 5.0]);
        let back = index_add(&taken, 1, &index, 3).unwrap();
        assert_eq!(back.to_f64_vec().unwrap(), [0.0, 0.0, 4.0, 3.0, 0.0, 10.0]);
        assert_eq!(
            index_select(&array, 0, &indices(&[1], [1])).unwrap().to_f64_vec().unwrap(),
            [3.0, 4.0, 5.0]
        );
        assert_eq!(index_select(&array, 0, &indices(&[], [0])).unwrap().shape()[..], [0, 3]);
    }

    #[test]
    fn gather_and_scatter_add_are_adjoint() {
        let array = counting([2, 3]);
        let index = indices(&[1, 1, 0, 2], [2, 2]);
        let gathered = gather_along(&array, 1, &index).unwrap();
        assert_eq!(gathered.to_f64_vec().unwrap(), [1.0, 1.0, 3.0, 5.0]);
        let back = scatter_add(&[2, 3].into(), 1, &index, &gathered).unwrap();
        assert_eq!(back.to_f64_vec().unwrap(), [0.0, 2.0, 0.0, 3.0, 0.0, 5.0]);
        let down = gather_along(&array, 0, &indices(&[1, 0], [1, 2])).unwrap();
        assert_eq!(down.to_f64_vec().unwrap(), [3.0, 1.0]);
    }

    #[test]
    fn scattered_half_sums_are_rounded_once() {
        let ones = Array::full([4096], 1.0, DType::F16).unwrap();
        let sum = scatter_add(&[1].into(), 0, &indices(&[0; 4096], [4096]), &ones).unwrap();
        // Rounded at every addition it would stop at 2048.
        assert_eq!(sum.item::<f16>().unwrap().to_f64(), 4096.0);
    }

    #[test]
    fn indices_that_do_not_exist_are_errors() {
        let array = counting([2, 3]);
        for index in [3, -1, i64::MIN] {
            assert!(matches!(
                index_select(&array, 1, &indices(&[index], [1])),
                Err(Error::IndexOutOfRange { extent: 3, .. })
            ));
        }
        assert!(index_select(&array, 1, &counting([2])).is_err());
        assert!(index_select(&Array::scalar(1.0_f32), 0, &indices(&[0], [1])).is_err());
        assert!(gather_along(&array, 1, &indices(&[0; 3], [3, 1])).is_err());
        assert!(gather_along(&array, 1, &indices(&[0; 3], [3])).is_err());
        assert!(one_hot(&indices(&[5], [1]), 5, DType::F32).is_err());
    }

    #[test]
    fn one_hot_marks_the_class() {
        let hot = one_hot(&indices(&[1, 0], [2]), 3, DType::BF16).unwrap();
        assert_eq!(
            (hot.dtype(), hot.to_f64_vec().unwrap()),
            (DType::BF16, vec![0.0, 1.0, 0.0, 1.0, 0.0, 0.0])
        );
    }

    #[test]
    fn cat_joins_along_any_axis_and_promotes() {
        let (a, b) = (counting([2, 1]), counting([2, 2]).cast(DType::F64).unwrap());
        let joined = cat(&[a.clone(), b.clone()], 1).unwrap();
        assert_eq!(
            (joined.dtype(), joined.to_f64_vec().unwrap()),
            (DType::F64, vec![0.0, 0.0, 1.0, 1.0, 2.0, 3.0])
        );
        assert!(cat(&[a.clone(), b], 0).is_err());
        assert!(cat(&[], 0).is_err());
        assert!(cat(&[Array::scalar(1.0_f32)], 0).is_err());
        assert_eq!(cat(&[Array::zeros([0, 1], DType::F32).unwrap(), a], 0).unwrap().shape()[..], [2, 1]);
        assert_eq!(cat(&[Array::zeros([0, 1], DType::F32).unwrap()], 1).unwrap().shape()[..], [0, 1]);
    }
}
