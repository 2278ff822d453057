//! What an optimizer asks of arrays: a formula of three of them in one pass, and sums over all elements.

use smallvec::SmallVec;

use super::compute::{BLOCK, Scratch};
use super::parallel::{PIECE, for_each_piece};
use super::read::Reader;
use super::real::Real;
use crate::cpu::array::Array;
use crate::cpu::buffer::allocate;
use crate::dtype::DType;
use crate::error::Result;

/// A function of three numbers.
pub(crate) trait Formula: Sync {
    /// The function in `f32` or `f64`, with its constants rounded to that type.
    fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync;
}

/// A formula of three arrays of one shape, element by element: computed in `wide`, which is `f32` or `f64`, and rounded once
/// to `dtype`.
pub(crate) fn formula(
    wide: DType,
    inputs: [&Array; 3],
    dtype: DType,
    formula: &impl Formula,
) -> Result<Array> {
    match wide {
        DType::F64 => computed::<f64>(inputs, dtype, &formula.of::<f64>()),
        _ => computed::<f32>(inputs, dtype, &formula.of::<f32>()),
    }
}

fn computed<R: Real>(
    inputs: [&Array; 3],
    dtype: DType,
    function: &(impl Fn(R, R, R) -> R + Sync),
) -> Result<Array> {
    let [a, b, c] = inputs.map(Reader::new);
    let buffer =
        R::produce(dtype, inputs[0].element_count(), &|start, out: &mut [R], s: &mut Scratch<R>| {
            let a = a.block(start, out.len(), &mut s.0);
            let b = b.block(start, out.len(), &mut s.1);
            let c = c.block(start, out.len(), &mut s.2);
            for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
                *out = function(a, b, c);
            }
        })?;
    Ok(Array::from_buffer(buffer, inputs[0].shape().clone()))
}

/// The sum of `measure` of each element, formed in `f64`: first in pieces, so that it does not depend on threads.
pub(crate) fn total(array: &Array, measure: fn(f64) -> f64) -> Result<f64> {
    let (reader, len) = (Reader::new(array), array.element_count());
    let mut sums = allocate::<f64>(len.div_ceil(PIECE))?;
    for_each_piece(&mut sums, 1, &|piece, sum| {
        let (mut scratch, end) = (SmallVec::<[f64; 8]>::new(), len.min((piece + 1) * PIECE));
        for start in (piece * PIECE..end).step_by(BLOCK) {
            let block = reader.block(start, BLOCK.min(end - start), &mut scratch);
            sum[0] += block.iter().map(|&element| measure(element)).sum::<f64>();
        }
    });
    Ok(sums.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a·b + c/3`.
    struct Example;

    impl Formula for Example {
        fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync {
            let third = R::from_f64(1.0 / 3.0);
            move |a, b, c| a * b + c * third
        }
    }

    fn array(values: &[f64], dtype: DType) -> Array {
        Array::from_slice(values, [values.len()]).unwrap().cast(dtype).unwrap()
    }

    #[test]
    fn a_formula_is_computed_wide_and_rounded_once() {
        let one_and_a_bit = 1.0 + 2.0_f64.powi(-10);
        let a = array(&[one_and_a_bit, 3.0], DType::F16);
        let zero = array(&[0.0; 2], DType::F32);
        // The square has a bit at 2^-20, which f16 lacks; half of it at 2^-11 would be a tie.
        let squares = formula(DType::F32, [&a, &a, &zero], DType::F32, &Example).unwrap();
        assert_eq!(squares.to_f64_vec().unwrap(), [one_and_a_bit * one_and_a_bit, 9.0]);
        let third = formula(DType::F64, [&a, &zero, &a], DType::F64, &Example).unwrap();
        assert_eq!(third.to_f64_vec().unwrap()[1], 3.0 * (1.0 / 3.0));
    }

    #[test]
    fn a_formula_reads_views_in_their_order() {
        let a = array(&[1.0, 2.0, 3.0, 4.0], DType::F16).reshape([2, 2]).unwrap();
        let (turned, zero) = (a.permute(&[1, 0]).unwrap(), Array::zeros([2, 2], DType::F32).unwrap());
        let products = formula(DType::F32, [&a, &turned, &zero], DType::F32, &Example).unwrap();
        assert_eq!(products.to_f64_vec().unwrap(), [1.0, 6.0, 6.0, 16.0]);
    }

    #[test]
    fn a_total_counts_every_element_once_across_pieces() {
        for len in [0, 1, BLOCK, BLOCK + 1, PIECE, 2 * PIECE + BLOCK + 3] {
            let ones = Array::ones([len], DType::F16).unwrap();
            assert_eq!(total(&ones, |value| 2.0 * value).unwrap(), 2.0 * len as f64);
        }
    }
}
