//! Element types: what a tensor stores, and how values pass from one type to another.
//!
//! Conversions round to nearest even, once, straight from source to target. Nothing here knows of tensors.

mod census;
mod convert;
mod element;
mod f8;
mod promote;

pub use census::Census;
pub use convert::{f64_to_bf16, f64_to_f16, round_to};
pub use element::Element;
pub use f8::{f8e4m3, f8e5m2};
pub use half::{bf16, f16};

use core::fmt;

/// The type of a tensor's elements.
///
/// A closed set, ordered by kind and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// Truth values.
    Bool = 1,
    /// Unsigned 8-bit integers.
    U8,
    /// Signed 8-bit integers.
    I8,
    /// Signed 16-bit integers.
    I16,
    /// Signed 32-bit integers.
    I32,
    /// Signed 64-bit integers.
    I64,
    /// 8-bit floats, 4 exponent and 3 fraction bits, no infinities: what overflows becomes ±448 (`float8_e4m3fn`).
    F8E4M3,
    /// 8-bit floats, 5 exponent and 2 fraction bits, with infinities (`float8_e5m2`).
    F8E5M2,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl DType {
    /// Every dtype.
    pub const ALL: [Self; 12] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F8E4M3,
        Self::F8E5M2,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    /// The floating dtypes: those that a gradient can have.
    pub const FLOATS: [Self; 6] = [Self::F8E4M3, Self::F8E5M2, Self::F16, Self::BF16, Self::F32, Self::F64];

    /// Whether values are floating-point numbers; only these can be gradients.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F8E4M3 | Self::F8E5M2 | Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Whether values are integers (`bool` is not).
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::U8 | Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// How many bytes an element takes.
    pub const fn size_in_bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 | Self::F8E4M3 | Self::F8E5M2 => 1,
            Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// The word for it in the attribute, in errors and in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F8E4M3 => "f8e4m3",
            Self::F8E5M2 => "f8e5m2",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The dtype of the given [`DType::as_str`].
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.as_str() == word)
    }

    /// The dtype in which sums of this dtype are formed: `f32` for 8- and 16-bit floats, else its own.
    ///
    /// Integers narrower than 64 bits and `bool` are summed as `i64`, as in PyTorch.
    pub const fn accumulation(self) -> Self {
        match self {
            Self::F8E4M3 | Self::F8E5M2 | Self::F16 | Self::BF16 => Self::F32,
            Self::Bool | Self::U8 | Self::I8 | Self::I16 | Self::I32 => Self::I64,
            Self::F32 | Self::F64 | Self::I64 => self,
        }
    }

    /// The dtype whose discriminant is `code`, the inverse of `dtype as u8`.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).wrapping_sub(1)).copied()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_survives_its_word_and_its_code() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_word(dtype.as_str()), Some(dtype));
            assert_eq!(DType::from_code(dtype as u8), Some(dtype));
        }
        assert_eq!(DType::from_code(0), None);
        assert_eq!(DType::from_code(13), None);
    }
}
