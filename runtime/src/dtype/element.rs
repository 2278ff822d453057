//! The Rust types that a tensor can store.

use core::fmt::{Debug, Display};

use super::convert::f64_to_f32_odd;
use super::{DType, bf16, f8e4m3, f8e5m2, f16, f64_to_bf16, f64_to_f16};

mod sealed {
    pub trait Sealed {}
}

/// A type that a tensor can store.
///
/// Sealed: the set of dtypes is closed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dtype",
    label = "not a dtype",
    note = "a tensor stores f16, bf16, f32, f64, f8e4m3, f8e5m2, i8, i16, i32, i64, u8 or bool"
)]
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + Debug + Display + Send + Sync + 'static
{
    /// The dtype of this type.
    const DTYPE: DType;

    /// Rounds once to this type: floats to nearest even, integers toward zero.
    fn from_f64(value: f64) -> Self;

    /// The same value as an `f64`; of an `i64` the nearest one.
    fn to_f64(self) -> f64;
}

macro_rules! element {
    ($($type:ty: $dtype:ident, from $from:expr, to $to:expr;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn from_f64(value: f64) -> Self {
                ($from)(value)
            }

            fn to_f64(self) -> f64 {
                ($to)(self)
            }
        }
    )*};
}

element! {
    bool: Bool, from |v: f64| v != 0.0, to |v| f64::from(u8::from(v));
    u8: U8, from |v: f64| v as i64 as u8, to f64::from;
    i8: I8, from |v: f64| v as i64 as i8, to f64::from;
    i16: I16, from |v: f64| v as i64 as i16, to f64::from;
    i32: I32, from |v: f64| v as i64 as i32, to f64::from;
    i64: I64, from |v: f64| v as i64, to |v| v as f64;
    f8e4m3: F8E4M3, from |v| Self::from_f32(f64_to_f32_odd(v)), to |v: Self| f64::from(v.to_f32());
    f8e5m2: F8E5M2, from |v| Self::from_f32(f64_to_f32_odd(v)), to |v: Self| f64::from(v.to_f32());
    f16: F16, from f64_to_f16, to f16::to_f64;
    bf16: BF16, from f64_to_bf16, to bf16::to_f64;
    f32: F32, from |v: f64| v as f32, to f64::from;
    f64: F64, from |v| v, to |v| v;
}
