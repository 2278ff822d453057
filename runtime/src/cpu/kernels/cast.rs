//! Conversion to another dtype, and addition into an array that nobody else holds.

use smallvec::SmallVec;

use super::compute::{BLOCK, Compute, Scratch, add_to, with_compute};
use super::convert::Convert;
use super::parallel::{PIECE, for_each_piece};
use super::read::{Reader, gather};
use super::turn::Turned;
use crate::cpu::array::Array;
use crate::cpu::buffer::{Buffer, Store, allocate, with_store};
use crate::dtype::{DType, bf16, f8e4m3, f8e5m2, f16};
use crate::error::Result;

/// The same values in `dtype`: rounded once to nearest even, to integers truncated and wrapped.
pub(crate) fn cast(array: &Array, dtype: DType) -> Result<Array> {
    if array.dtype() == dtype {
        return Ok(array.clone());
    }
    array.elementwise(|array| {
        let reader = Reader::new(array);
        let buffer = with_compute!(array.dtype(), C => {
            C::produce(dtype, array.element_count(), &|start, out, _: &mut Scratch<C>| reader.read(start, out))?
        });
        Ok(Array::from_buffer(buffer, array.shape().clone()))
    })
}

/// The same elements, row-major without gaps; a contiguous array is returned as it is.
pub(crate) fn contiguous(array: &Array) -> Result<Array> {
    let layout = array.layout();
    if layout.is_contiguous() {
        return Ok(array.clone());
    }
    let dims = layout.collapsed();
    let buffer = with_store!(array.buffer(), store => {
        let mut out = allocate(array.element_count())?;
        if let Some(turned) = Turned::of(&dims) {
            turned.copy(store.as_slice(), layout.offset(), &mut out);
            return Ok(Array::from_buffer(Store::from_vec(out).into(), array.shape().clone()));
        }
        for_each_piece(&mut out, PIECE, &|start, out| {
            let copy = |from: &[_], to: &mut [_]| to.copy_from_slice(from);
            gather(store.as_slice(), layout.offset(), &dims, start, out, copy, |element| element);
        });
        Store::from_vec(out).into()
    });
    Ok(Array::from_buffer(buffer, array.shape().clone()))
}

/// `array + other` in the dtype of `array`, which `other`, of the same shape, is rounded to first.
///
/// In place if nobody else holds the elements of `array`.
pub(crate) fn accumulate(mut array: Array, other: &Array) -> Result<Array> {
    let dtype = array.dtype();
    // The other operand is rounded to this dtype before it is added: that is what an edge promises.
    let other = if other.dtype().promote(dtype) == dtype { other.clone() } else { cast(other, dtype)? };
    let reader = Reader::new(&other);
    let contiguous = array.layout().is_contiguous();
    let (offset, len) = (array.layout().offset(), array.element_count());
    if contiguous
        && let Some(buffer) = array.buffer_mut()
        && with_compute!(dtype, C => add_in_place::<C>(buffer, offset, len, &reader))
    {
        return Ok(array);
    }
    let own = Reader::new(&array);
    let buffer = with_compute!(dtype, C => {
        C::produce(dtype, len, &|start, out: &mut [C], scratch: &mut Scratch<C>| {
            let other = reader.block(start, out.len(), &mut scratch.0);
            let own = own.block(start, out.len(), &mut scratch.1);
            for ((out, &own), &other) in out.iter_mut().zip(own).zip(other) {
                *out = own.plus(other);
            }
        })?
    });
    Ok(Array::from_buffer(buffer, array.shape().clone()))
}

/// Adds to `len` elements from `offset` on, unless they are shared; says whether it did.
fn add_in_place<C: Compute>(buffer: &mut Buffer, offset: usize, len: usize, other: &Reader<'_>) -> bool
where
    bool: Convert<C>,
    u8: Convert<C>,
    i8: Convert<C>,
    i16: Convert<C>,
    i32: Convert<C>,
    i64: Convert<C>,
    f8e4m3: Convert<C>,
    f8e5m2: Convert<C>,
    f16: Convert<C>,
    bf16: Convert<C>,
    f32: Convert<C>,
    f64: Convert<C>,
{
    if let Some(elements) = buffer.unique::<C>() {
        for_each_piece(&mut elements[offset..offset + len], PIECE, &|first, piece| {
            let mut scratch = SmallVec::new();
            for (index, own) in piece.chunks_mut(BLOCK).enumerate() {
                add_to(own, other.block(first + index * BLOCK, own.len(), &mut scratch));
            }
        });
        return true;
    }
    with_store!(buffer, store => {
        let Some(elements) = store.unique() else { return false };
        for_each_piece(&mut elements[offset..offset + len], PIECE, &|first, piece| {
            let (mut scratch, mut wide) = (SmallVec::new(), SmallVec::<[C; 8]>::new());
            for (index, own) in piece.chunks_mut(BLOCK).enumerate() {
                wide.resize(own.len(), C::default());
                Convert::load(own, &mut wide);
                add_to(&mut wide, other.block(first + index * BLOCK, own.len(), &mut scratch));
                Convert::save(&wide, own);
            }
        });
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Array {
        Array::from_vec(values.to_vec(), [values.len()]).unwrap()
    }

    #[test]
    fn a_cast_rounds_an_f64_once_and_wraps_integers() {
        let value =
            Array::from_vec(vec![1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-30), 300.7, -1.2], [3]).unwrap();
        assert_eq!(cast(&value, DType::F16).unwrap().to_f64_vec().unwrap()[0], 1.000_976_562_5);
        assert_eq!(cast(&value, DType::U8).unwrap().to_vec::<u8>().unwrap(), [1, 44, 255]);
        assert_eq!(cast(&value, DType::Bool).unwrap().to_vec::<bool>().unwrap(), [true; 3]);
        let transposed = Array::from_vec(vec![1_i8, 2, 3, 4], [2, 2]).unwrap().permute(&[1, 0]).unwrap();
        assert_eq!(cast(&transposed, DType::BF16).unwrap().to_f64_vec().unwrap(), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn every_pair_of_dtypes_converts_small_values_exactly() {
        for from in DType::ALL {
            for to in DType::ALL {
                let array = Array::full([3], 1.0, from);
                let array = cast(&array.unwrap(), to).unwrap();
                assert_eq!(
                    (array.dtype(), array.to_f64_vec().unwrap()),
                    (to, vec![1.0; 3]),
                    "{from} to {to}"
                );
            }
        }
    }

    #[test]
    fn accumulation_is_in_place_for_the_sole_owner_only() {
        let first = f32s(&[1.0, 2.0]);
        let kept = first.clone();
        let sum = accumulate(first, &f32s(&[10.0, 20.0])).unwrap();
        assert_eq!(sum.to_vec::<f32>().unwrap(), [11.0, 22.0]);
        assert_eq!(kept.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        let place = sum.buffer().slice::<f32>().unwrap().as_ptr();
        let sum = accumulate(sum, &cast(&kept, DType::F16).unwrap()).unwrap();
        assert_eq!(sum.to_vec::<f32>().unwrap(), [12.0, 24.0]);
        assert_eq!(sum.buffer().slice::<f32>().unwrap().as_ptr(), place);
    }

    #[test]
    fn the_added_array_is_rounded_to_the_dtype_of_the_sum_first() {
        // Formed in f32 and rounded once this would be 1 + 2^-10.
        let own = Array::from_vec(vec![f16::from_f64(1.0); 2], [2]).unwrap();
        let added = accumulate(own, &f32s(&[2.0_f32.powi(-11) * 1.0001; 2])).unwrap();
        assert_eq!(added.to_f64_vec().unwrap(), [1.0; 2]);
        let own = Array::from_vec(vec![bf16::from_f64(1.0)], ()).unwrap();
        let half = Array::from_vec(vec![0.5_f64], ()).unwrap();
        assert_eq!(accumulate(own, &half).unwrap().item::<bf16>().unwrap().to_f64(), 1.5);
    }

    #[test]
    fn a_view_accumulates_into_new_memory() {
        let whole = f32s(&[1.0, 2.0, 3.0, 4.0]).reshape([2, 2]).unwrap();
        let sum = accumulate(whole.permute(&[1, 0]).unwrap(), &whole).unwrap();
        assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0, 5.0, 5.0, 8.0]);
    }
}
