//! Elements as bytes, little-endian, and the format's words for dtypes.

use safetensors::Dtype;

use crate::cpu::Array;
use crate::cpu::buffer::{allocate, with_type};
use crate::dtype::{DType, Element, bf16, f8e4m3, f8e5m2, f16};
use crate::error::Result;
use crate::shape::Shape;

/// An element that can be written as bytes.
trait Bytes: Element {
    /// Appends it.
    fn put(self, bytes: &mut Vec<u8>);

    /// Reads it from as many bytes as it takes; `None` if no element is written like this.
    fn get(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Bytes for $type {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}
numbers! { u8 i8 i16 i32 i64 f16 bf16 f32 f64 }

macro_rules! eight_bit_floats {
    ($($type:ty)*) => {$(
        impl Bytes for $type {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.push(self.to_bits());
            }

            fn get(bytes: &[u8]) -> Option<Self> {
                bytes.first().copied().map(Self::from_bits)
            }
        }
    )*};
}
eight_bit_floats! { f8e4m3 f8e5m2 }

impl Bytes for bool {
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn get(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

/// The elements of an array, row-major.
pub(super) fn to_bytes(array: &Array) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(array.element_count() * array.dtype().size_in_bytes());
    with_type!(array.dtype(), T => array.to_vec::<T>()?.into_iter().for_each(|element| element.put(&mut bytes)));
    Ok(bytes)
}

/// The array with these elements; `None` if the bytes are not of that many, or some are no element.
pub(super) fn from_bytes(dtype: DType, shape: &Shape, bytes: &[u8]) -> Result<Option<Array>> {
    let len = shape.checked_len()?;
    if bytes.len() != len * dtype.size_in_bytes() {
        return Ok(None);
    }
    with_type!(dtype, T => {
        let mut elements = allocate::<T>(len)?;
        for (slot, bytes) in elements.iter_mut().zip(bytes.chunks_exact(dtype.size_in_bytes())) {
            match T::get(bytes) {
                Some(element) => *slot = element,
                None => return Ok(None),
            }
        }
        Array::from_vec(elements, shape).map(Some)
    })
}

/// The format's word for each dtype.
const WORDS: [(DType, Dtype); 12] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I8, Dtype::I8),
    (DType::I16, Dtype::I16),
    (DType::I32, Dtype::I32),
    (DType::I64, Dtype::I64),
    (DType::F8E4M3, Dtype::F8_E4M3),
    (DType::F8E5M2, Dtype::F8_E5M2),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
];

/// The dtype for a word of the format, unless it is one that tensors here cannot have.
pub(super) fn from_word(word: Dtype) -> Option<DType> {
    WORDS.iter().find(|entry| entry.1 == word).map(|entry| entry.0)
}

/// The format's word for a dtype.
pub(super) fn to_word(dtype: DType) -> Dtype {
    WORDS.iter().find(|entry| entry.0 == dtype).map_or(Dtype::U8, |entry| entry.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_word_and_survives_its_bytes() {
        for dtype in DType::ALL {
            assert_eq!(from_word(to_word(dtype)), Some(dtype));
            assert_eq!(to_word(dtype).bitsize(), 8 * dtype.size_in_bytes());
            let array = Array::from_slice(&[1.0, 0.0, 1.0], [3]).unwrap().cast(dtype).unwrap();
            let read = from_bytes(dtype, array.shape(), &to_bytes(&array).unwrap()).unwrap().unwrap();
            assert_eq!((read.dtype(), read.to_f64_vec().unwrap()), (dtype, vec![1.0, 0.0, 1.0]));
        }
    }

    #[test]
    fn bytes_that_are_no_elements_are_refused() {
        assert!(from_bytes(DType::Bool, &Shape::from([1]), &[2]).unwrap().is_none());
        assert!(from_bytes(DType::F32, &Shape::from([2]), &[0; 7]).unwrap().is_none());
    }
}
