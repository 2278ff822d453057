//! Functions of 8- and 16-bit floats, looked up: there are 256 or 65536 values, and a large array has many times as many elements.
//!
//! A table holds what the function's kernel made of every value, so that results do not depend on whether one was used. It is
//! made when it is first needed, and stays: 128 KiB, which fit in a second-level cache, or 256 bytes.

use std::sync::OnceLock;

use super::parallel::{PIECE, for_each_piece};
use super::read::Reader;
use crate::cpu::array::Array;
use crate::cpu::buffer::{Store, allocate};
use crate::dtype::{DType, Element, bf16, f8e4m3, f8e5m2, f16};
use crate::error::Result;

/// What a function makes of every value of a dtype, computed when it is first asked for.
pub(super) struct Tables {
    f8e4m3: OnceLock<Box<[f8e4m3; 1 << 8]>>,
    f8e5m2: OnceLock<Box<[f8e5m2; 1 << 8]>>,
    f16: OnceLock<Box<[f16; 1 << 16]>>,
    bf16: OnceLock<Box<[bf16; 1 << 16]>>,
}

impl Tables {
    pub(super) const fn new() -> Self {
        Self { f8e4m3: OnceLock::new(), f8e5m2: OnceLock::new(), f16: OnceLock::new(), bf16: OnceLock::new() }
    }

    /// `function` of every element of an array that has no gaps and as many elements as there are values, or more; `None` for
    /// others, which are not worth a table.
    pub(super) fn look_up(
        &self,
        array: &Array,
        function: impl Fn(&Array) -> Result<Array>,
    ) -> Result<Option<Array>> {
        match array.dtype() {
            DType::F16 => look_up(&self.f16, array, function),
            DType::BF16 => look_up(&self.bf16, array, function),
            DType::F8E4M3 => look_up(&self.f8e4m3, array, function),
            DType::F8E5M2 => look_up(&self.f8e5m2, array, function),
            _ => Ok(None),
        }
    }
}

/// A type with few values, numbered by their bits.
trait Few<const COUNT: usize>: Element {
    fn number(self) -> usize;
    fn from_number(number: usize) -> Self;
}

macro_rules! few {
    ($($type:ty, $bits:ty, $count:expr;)*) => {$(
        impl Few<{ $count }> for $type {
            #[inline(always)]
            fn number(self) -> usize {
                self.to_bits().into()
            }

            fn from_number(number: usize) -> Self {
                Self::from_bits(number as $bits)
            }
        }
    )*};
}
few! {
    f16, u16, 1 << 16;
    bf16, u16, 1 << 16;
    f8e4m3, u8, 1 << 8;
    f8e5m2, u8, 1 << 8;
}

fn look_up<T: Few<COUNT>, const COUNT: usize>(
    table: &OnceLock<Box<[T; COUNT]>>,
    array: &Array,
    function: impl Fn(&Array) -> Result<Array>,
) -> Result<Option<Array>> {
    let (reader, len) = (Reader::new(array), array.element_count());
    let Some(elements) = reader.elements::<T>(0, len).filter(|_| len >= COUNT) else { return Ok(None) };
    let Some(table) = table.get().map_or_else(|| computed(table, function), |table| Ok(Some(&**table)))?
    else {
        return Ok(None);
    };
    let mut out = allocate::<T>(len)?;
    for_each_piece(&mut out, PIECE, &|start, out| {
        for (out, element) in out.iter_mut().zip(&elements[start..]) {
            *out = table[element.number()];
        }
    });
    Ok(Some(Array::from_buffer(Store::from_vec(out).into(), array.shape().clone())))
}

#[cold]
fn computed<T: Few<COUNT>, const COUNT: usize>(
    table: &OnceLock<Box<[T; COUNT]>>,
    function: impl Fn(&Array) -> Result<Array>,
) -> Result<Option<&[T; COUNT]>> {
    let values = Array::from_vec((0..COUNT).map(T::from_number).collect(), [COUNT])?;
    let results = function(&values)?.to_vec::<T>()?.into_boxed_slice();
    Ok(results.try_into().ok().map(|results| &**table.get_or_init(|| results)))
}
