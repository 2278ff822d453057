//! Matrix products: batched, broadcasting, of one-dimensional operands as `torch.matmul`.
//!
//! 8- and 16-bit floats are converted to `f32`, multiplied and summed there, and rounded once; integers wrap.

use gemm_common::Parallelism;

use super::binary::broadcast_shape;
use super::compute::{Compute, with_compute};
use crate::cpu::array::Array;
use crate::cpu::buffer::{allocate, zeroed};
use crate::cpu::layout::Strides;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The matrix product of `lhs` and `rhs`, in `dtype` (default: the promoted dtype of both).
///
/// The sums are formed in the wider of what both dtypes are computed in and rounded to `dtype` once.
pub(crate) fn matmul(lhs: &Array, rhs: &Array, dtype: Option<DType>) -> Result<Array> {
    let operation = "matmul";
    let (left, right) = (lhs.shape(), rhs.shape());
    if left.is_empty() || right.is_empty() {
        let problem = format!("a scalar is no matrix: shapes {left} and {right}; use `mul`");
        return Err(Error::Shape { operation, problem });
    }
    let left_matrix = if left.len() == 1 { lhs.unsqueeze(0)? } else { lhs.clone() };
    let right_matrix = if right.len() == 1 { rhs.unsqueeze(1)? } else { rhs.clone() };
    let (batch_left, m, k) = parts(left_matrix.shape());
    let (batch_right, k_right, n) = parts(right_matrix.shape());
    if k != k_right {
        let problem = format!("shapes {left} and {right}: {k} columns meet {k_right} rows");
        return Err(Error::Shape { operation, problem });
    }
    let batch = broadcast_shape(operation, &batch_left, &batch_right)?;
    let product = product(&left_matrix, &right_matrix, &batch, [m, k, n], dtype)?;
    let shape: Shape = batch
        .iter()
        .copied()
        .chain((left.len() > 1).then_some(m))
        .chain((right.len() > 1).then_some(n))
        .collect();
    product.reshaped(&shape)
}

/// Batch extents, rows and columns.
fn parts(shape: &Shape) -> (Shape, usize, usize) {
    match &shape[..] {
        [batch @ .., rows, columns] => (Shape::from(batch), *rows, *columns),
        _ => (Shape::scalar(), 1, 1),
    }
}

fn product(
    lhs: &Array,
    rhs: &Array,
    batch: &Shape,
    [m, k, n]: [usize; 3],
    dtype: Option<DType>,
) -> Result<Array> {
    let promoted = lhs.dtype().promote(rhs.dtype());
    let dtype = dtype.unwrap_or(promoted);
    // An integer product asked for as a float is formed in that float.
    let computed =
        promoted.accumulation().promote(if promoted.is_float() { dtype.accumulation() } else { dtype });
    let shape: Shape = batch.iter().copied().chain([m, n]).collect();
    let len = shape.checked_len()?;
    let buffer = with_compute!(computed, C => {
        let mut out = if k > 0 { allocate::<C>(len)? } else { zeroed(len)? };
        if len > 0 && k > 0 {
            let (lhs, rhs) = (lhs.cast(C::DTYPE)?, rhs.cast(C::DTYPE)?);
            if rhs.shape().len() == 2 && lhs.layout().is_contiguous() {
                // One matrix for the whole batch: its rows follow each other.
                let rows = len / n;
                multiply::<C>(&mut out, &lhs.reshaped(&[rows, k].into())?, &rhs, &Shape::scalar(), [rows, k, n]);
            } else {
                multiply::<C>(&mut out, &lhs, &rhs, batch, [m, k, n]);
            }
        }
        C::store(dtype, out)?
    });
    Ok(Array::from_buffer(buffer, shape))
}

/// Multiplies matrix by matrix; both arrays have elements of type `C`.
fn multiply<C: Product>(out: &mut [C], lhs: &Array, rhs: &Array, batch: &Shape, [m, k, n]: [usize; 3]) {
    let left = Batch::<C>::new(lhs, batch);
    let right = Batch::<C>::new(rhs, batch);
    for (nth, out) in out.chunks_mut(m * n).enumerate() {
        C::product(out, &left.matrix(nth, [m, k]), &right.matrix(nth, [k, n]));
    }
}

/// The matrices of an array, broadcast to a batch.
struct Batch<'a, C> {
    elements: &'a [C],
    offset: usize,
    extents: &'a Shape,
    strides: Strides,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, C: Compute> Batch<'a, C> {
    fn new(array: &'a Array, batch: &'a Shape) -> Self {
        let layout = array.layout();
        let mut strides = layout.strides();
        let column_stride = strides.pop().unwrap_or(1);
        let row_stride = strides.pop().unwrap_or(1);
        // Along batch dimensions that it lacks, or has once, it is the same matrix again.
        let missing = batch.len() - strides.len();
        let own =
            array.shape().iter().zip(&strides).map(|(&extent, &stride)| if extent == 1 { 0 } else { stride });
        let strides = core::iter::repeat_n(0, missing).chain(own).collect();
        let elements = array.buffer().slice().unwrap_or_default();
        Self { elements, offset: layout.offset(), extents: batch, strides, row_stride, column_stride }
    }

    fn matrix(&self, nth: usize, [rows, columns]: [usize; 2]) -> Matrix<'a, C> {
        let (mut left, mut offset) = (nth, self.offset);
        for (&extent, &stride) in self.extents.iter().zip(&self.strides).rev() {
            offset += left % extent * stride;
            left /= extent;
        }
        let elements = self.elements.get(offset..).unwrap_or_default();
        Matrix { elements, rows, columns, row_stride: self.row_stride, column_stride: self.column_stride }
    }
}

/// A matrix of at least one element: `[i, j]` is `elements[i * row_stride + j * column_stride]`.
struct Matrix<'a, C> {
    elements: &'a [C],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<C: Copy> Matrix<'_, C> {
    fn at(&self, row: usize, column: usize) -> C {
        self.elements[row * self.row_stride + column * self.column_stride]
    }

    /// Whether every element it names exists.
    fn is_within_bounds(&self) -> bool {
        let last = |extent: usize, stride: usize| extent.checked_sub(1)?.checked_mul(stride);
        let last = last(self.rows, self.row_stride).zip(last(self.columns, self.column_stride));
        last.and_then(|(row, column)| row.checked_add(column)).is_some_and(|last| last < self.elements.len())
    }
}

/// Up to so many multiplications the preparations of a fast kernel take longer.
const FEW: usize = 256;

fn multiplications<C>(lhs: &Matrix<'_, C>, rhs: &Matrix<'_, C>) -> usize {
    lhs.rows.saturating_mul(lhs.columns).saturating_mul(rhs.columns)
}

trait Product: Compute {
    /// Writes `lhs · rhs` to `out`, row-major.
    fn product(out: &mut [Self], lhs: &Matrix<'_, Self>, rhs: &Matrix<'_, Self>);
}

impl Product for i64 {
    fn product(out: &mut [Self], lhs: &Matrix<'_, Self>, rhs: &Matrix<'_, Self>) {
        by_rows(out, lhs, rhs, Self::wrapping_mul);
    }
}

/// Writes `lhs · rhs` to `out`, one product after the other.
fn by_rows<C: Compute>(out: &mut [C], lhs: &Matrix<'_, C>, rhs: &Matrix<'_, C>, times: fn(C, C) -> C) {
    out.fill(C::default());
    for (i, out) in out.chunks_mut(rhs.columns).enumerate() {
        for nth in 0..lhs.columns {
            let factor = lhs.at(i, nth);
            for (j, out) in out.iter_mut().enumerate() {
                *out = out.plus(times(factor, rhs.at(nth, j)));
            }
        }
    }
}

impl Product for f32 {
    fn product(out: &mut [Self], lhs: &Matrix<'_, Self>, rhs: &Matrix<'_, Self>) {
        if multiplications(lhs, rhs) <= FEW {
            return by_rows(out, lhs, rhs, core::ops::Mul::mul);
        }
        gemm(out, lhs, rhs, 1.0, gemm_f32::gemm::f32::get_gemm_fn());
    }
}

impl Product for f64 {
    fn product(out: &mut [Self], lhs: &Matrix<'_, Self>, rhs: &Matrix<'_, Self>) {
        if multiplications(lhs, rhs) <= FEW {
            return by_rows(out, lhs, rhs, core::ops::Mul::mul);
        }
        gemm(out, lhs, rhs, 1.0, gemm_f64::gemm::f64::get_gemm_fn());
    }
}

/// A kernel of the `gemm` crates: `dst = beta·lhs·rhs`, with the strides of columns and rows behind each pointer.
type Kernel<C> = unsafe fn(
    usize,
    usize,
    usize,
    *mut C,
    isize,
    isize,
    bool,
    *const C,
    isize,
    isize,
    *const C,
    isize,
    isize,
    C,
    C,
    bool,
    bool,
    bool,
    Parallelism,
);

/// Whether so many multiplications are worth spreading over threads.
#[cfg(feature = "rayon")]
fn parallelism(work: usize) -> Parallelism {
    if work >= 1 << 18 { Parallelism::Rayon(0) } else { Parallelism::None }
}

#[cfg(not(feature = "rayon"))]
fn parallelism(_: usize) -> Parallelism {
    Parallelism::None
}

#[allow(unsafe_code, reason = "the only interface of the `gemm` crates takes pointers")]
fn gemm<C: Compute>(out: &mut [C], lhs: &Matrix<'_, C>, rhs: &Matrix<'_, C>, one: C, kernel: Kernel<C>) {
    let (m, k, n) = (lhs.rows, lhs.columns, rhs.columns);
    let fits = lhs.is_within_bounds()
        && rhs.is_within_bounds()
        && rhs.rows == k
        && Some(out.len()) == m.checked_mul(n);
    assert!(fits, "a matrix reaches past its elements");
    let parallelism = parallelism(multiplications(lhs, rhs));
    let stride = |stride: usize| stride as isize;
    // Kernels are fastest when they write down columns: what is written is the transposed product, rhsᵀ·lhsᵀ, whose
    // columns are the rows of `out`.
    // SAFETY: every element that shapes and strides name exists, as was just checked; `out` is exclusive, so it overlaps
    // neither operand.
    unsafe {
        kernel(
            n,
            m,
            k,
            out.as_mut_ptr(),
            stride(n),
            1,
            false,
            rhs.elements.as_ptr(),
            stride(rhs.row_stride),
            stride(rhs.column_stride),
            lhs.elements.as_ptr(),
            stride(lhs.row_stride),
            stride(lhs.column_stride),
            C::default(),
            one,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{bf16, f16};

    /// Small integers, so that every product is exact.
    fn counting(shape: impl Into<Shape>, dtype: DType) -> Array {
        let shape = shape.into();
        let values: Vec<f64> = (0..shape.element_count()).map(|v| (v % 7) as f64 - 3.0).collect();
        Array::from_vec(values, shape).unwrap().cast(dtype).unwrap()
    }

    fn naive(lhs: &Array, rhs: &Array) -> Vec<f64> {
        let (_, m, k) = parts(lhs.shape());
        let (_, _, n) = parts(rhs.shape());
        let (a, b) = (lhs.to_f64_vec().unwrap(), rhs.to_f64_vec().unwrap());
        let dot = |i: usize, j: usize| (0..k).map(|x| a[i * k + x] * b[x * n + j]).sum();
        (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| dot(i, j)).collect()
    }

    #[test]
    fn products_of_every_dtype_and_layout_are_exact() {
        for dtype in [DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32] {
            for [m, k, n] in [[1, 1, 1], [2, 3, 4], [1, 5, 3], [17, 1, 9], [33, 20, 65], [3, 4, 1]] {
                let (a, b) = (counting([m, k], dtype), counting([k, n], dtype));
                let expected = naive(&a, &b);
                assert_eq!(
                    matmul(&a, &b, Some(DType::F64)).unwrap().to_f64_vec().unwrap(),
                    expected,
                    "{dtype}"
                );
                let a = a.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap();
                let b = b.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap();
                assert_eq!(
                    matmul(&a, &b, Some(DType::F64)).unwrap().to_f64_vec().unwrap(),
                    expected,
                    "{dtype}"
                );
            }
        }
    }

    #[test]
    fn batches_broadcast_and_vectors_are_rows_or_columns() {
        let (a, b) = (counting([5, 1, 2, 3], DType::F32), counting([4, 3, 2], DType::F32));
        let product = matmul(&a, &b, None).unwrap();
        assert_eq!(product.shape()[..], [5, 4, 2, 2]);
        for i in 0..5 {
            for j in 0..4 {
                let one = |array: &Array, axis, at| array.narrow(axis, at, 1).unwrap();
                let left = one(&a, 0, i).reshape([2, 3]).unwrap();
                let right = one(&b, 0, j).reshape([3, 2]).unwrap();
                let part = one(&one(&product, 0, i), 1, j).to_f64_vec().unwrap();
                assert_eq!(part, naive(&left, &right));
            }
        }
        let shape = |a: &[usize], b: &[usize]| {
            matmul(&counting(a, DType::F32), &counting(b, DType::F32), None)
                .map(|product| product.shape().to_vec())
        };
        assert_eq!(shape(&[3], &[3]).unwrap(), [0; 0]);
        assert_eq!(shape(&[3], &[3, 2]).unwrap(), [2]);
        assert_eq!(shape(&[2, 3], &[3]).unwrap(), [2]);
        assert_eq!(shape(&[7, 2, 3], &[3]).unwrap(), [7, 2]);
        assert_eq!(shape(&[3], &[7, 3, 2]).unwrap(), [7, 2]);
        assert_eq!(shape(&[7, 2, 3], &[3, 4]).unwrap(), [7, 2, 4]);
        assert_eq!(shape(&[0, 3], &[3, 4]).unwrap(), [0, 4]);
        assert!(shape(&[2, 3], &[2, 3]).is_err());
        assert!(shape(&[], &[3]).is_err());
        assert!(shape(&[2, 1, 3], &[3, 3, 1]).is_err());
    }

    #[test]
    fn a_sum_over_nothing_is_zero() {
        let product = matmul(&counting([2, 0], DType::F16), &counting([0, 3], DType::F16), None).unwrap();
        assert_eq!(product.to_vec::<f16>().unwrap(), [f16::ZERO; 6]);
    }

    #[test]
    fn half_products_are_summed_in_f32_and_rounded_once_or_not_at_all() {
        let ones = Array::full([1, 5000], 1.0, DType::F16).unwrap();
        let column = Array::full([5000, 1], 1.0, DType::F16).unwrap();
        assert_eq!(matmul(&ones, &column, None).unwrap().item::<f16>().unwrap().to_f64(), 5000.0);
        let brains = Array::full([1, 257], 1.0, DType::BF16).unwrap();
        let column = Array::full([257, 1], 1.0, DType::BF16).unwrap();
        assert_eq!(matmul(&brains, &column, None).unwrap().item::<bf16>().unwrap().to_f64(), 256.0);
        assert_eq!(matmul(&brains, &column, Some(DType::F32)).unwrap().item::<f32>().unwrap(), 257.0);
        let tiny = Array::full([257, 1], 1e-30, DType::F32).unwrap();
        assert_eq!(matmul(&ones.narrow(1, 0, 257).unwrap(), &tiny, None).unwrap().dtype(), DType::F32);
    }

    #[test]
    fn the_result_does_not_depend_on_threads() {
        let value = |v: usize| ((v * 7919) % 1013) as f32 / 1013.0 - 0.5;
        let array = |rows: usize, columns: usize| {
            Array::from_vec((0..rows * columns).map(value).collect::<Vec<_>>(), [rows, columns]).unwrap()
        };
        let (a, b) = (array(200, 700), array(700, 130));
        let whole = matmul(&a, &b, None).unwrap().to_vec::<f32>().unwrap();
        let again = std::thread::scope(|scope| scope.spawn(|| matmul(&a, &b, None).unwrap()).join()).unwrap();
        assert_eq!(again.to_vec::<f32>().unwrap(), whole);
        #[cfg(feature = "rayon")]
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let other = pool.install(|| matmul(&a, &b, None).unwrap().to_vec::<f32>().unwrap());
            assert_eq!(other, whole, "with {threads} threads");
        }
    }
}
