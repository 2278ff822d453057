//! Conversions between what is stored and what is computed with, element by element and slice by slice.

use super::narrow;
use crate::dtype::{Element, bf16, f8e4m3, f8e5m2, f16};

/// An element that can be read as a `C` and rounded from a `C`.
pub(crate) trait Convert<C: Copy>: Element {
    /// Its value as a `C`.
    fn load_one(self) -> C;

    /// The nearest element; integers truncate and wrap.
    fn save_one(value: C) -> Self;

    /// [`Convert::load_one`] of each.
    fn load(from: &[Self], to: &mut [C]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = from.load_one();
        }
    }

    /// [`Convert::save_one`] of each.
    fn save(from: &[C], to: &mut [Self]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = Self::save_one(from);
        }
    }
}

macro_rules! through_f64 {
    ($($type:ty)*) => {$(
        impl Convert<f64> for $type {
            fn load_one(self) -> f64 {
                self.to_f64()
            }

            fn save_one(value: f64) -> Self {
                // By its path: the methods of that name that f16 and bf16 have themselves may round twice.
                <Self as Element>::from_f64(value)
            }
        }
    )*};
}
through_f64!(bool u8 i8 i16 i32 i64 f8e4m3 f8e5m2 f16 bf16 f32 f64);

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Convert<f32> for $type {
            fn load_one(self) -> f32 {
                self as f32
            }

            fn save_one(value: f32) -> Self {
                value as i64 as Self
            }
        }

        impl Convert<i64> for $type {
            fn load_one(self) -> i64 {
                self.into()
            }

            fn save_one(value: i64) -> Self {
                value as Self
            }
        }
    )*};
}
integers!(u8 i8 i16 i32 i64);

impl Convert<f32> for bool {
    fn load_one(self) -> f32 {
        f32::from(u8::from(self))
    }

    fn save_one(value: f32) -> Self {
        value != 0.0
    }
}

impl Convert<i64> for bool {
    fn load_one(self) -> i64 {
        self.into()
    }

    fn save_one(value: i64) -> Self {
        value != 0
    }
}

macro_rules! floats_and_i64 {
    ($($type:ty, $value:ident => $save:expr;)*) => {$(
        impl Convert<i64> for $type {
            fn load_one(self) -> i64 {
                self.to_f64() as i64
            }

            fn save_one($value: i64) -> Self {
                $save
            }
        }
    )*};
}
floats_and_i64! {
    f8e4m3, v => <Self as Element>::from_f64(i64_to_f64_odd(v));
    f8e5m2, v => <Self as Element>::from_f64(i64_to_f64_odd(v));
    f16, v => <Self as Element>::from_f64(i64_to_f64_odd(v));
    bf16, v => <Self as Element>::from_f64(i64_to_f64_odd(v));
    f32, v => v as Self;
    f64, v => v as Self;
}

/// An `i64` as an `f64` that rounds to any narrower float as the `i64` itself would: bits that do not fit leave
/// a trace in the last one that does (rounding to odd).
fn i64_to_f64_odd(value: i64) -> f64 {
    const DROPPED: u64 = (1 << 11) - 1;
    let magnitude = value.unsigned_abs();
    if magnitude >> 53 == 0 {
        return value as f64;
    }
    let sticky = if magnitude & DROPPED == 0 { 0 } else { DROPPED + 1 };
    let kept = ((magnitude & !DROPPED) | sticky) as f64;
    if value < 0 { -kept } else { kept }
}

macro_rules! eight_bit_floats {
    ($($type:ty: $load:path, $save:path;)*) => {$(
        impl Convert<f32> for $type {
            fn load_one(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn save_one(value: f32) -> Self {
                $save(value)
            }

            fn load(from: &[Self], to: &mut [f32]) {
                $load(from, to);
            }

            fn save(from: &[f32], to: &mut [Self]) {
                narrow::save(from, to);
            }
        }
    )*};
}
eight_bit_floats! {
    f8e4m3: narrow::load_f8e4m3, narrow::to_f8e4m3;
    f8e5m2: narrow::load_f8e5m2, narrow::to_f8e5m2;
}

impl Convert<f32> for f16 {
    fn load_one(self) -> f32 {
        self.to_f32()
    }

    fn save_one(value: f32) -> Self {
        Self::from_f32(value)
    }

    fn load(from: &[Self], to: &mut [f32]) {
        narrow::load_f16(from, to);
    }

    fn save(from: &[f32], to: &mut [Self]) {
        narrow::save_f16(from, to);
    }
}

impl Convert<f32> for bf16 {
    #[inline(always)]
    fn load_one(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    // Without a branch, so that the compiler vectorizes it.
    #[inline(always)]
    fn save_one(value: f32) -> Self {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        let quiet = (bits >> 16) | 0x40;
        Self::from_bits(if value.is_nan() { quiet } else { rounded } as u16)
    }

    fn load(from: &[Self], to: &mut [f32]) {
        narrow::load(from, to);
    }

    fn save(from: &[f32], to: &mut [Self]) {
        narrow::save(from, to);
    }
}

impl Convert<f32> for f32 {
    fn load_one(self) -> f32 {
        self
    }

    fn save_one(value: f32) -> Self {
        value
    }
}

impl Convert<f32> for f64 {
    fn load_one(self) -> f32 {
        self as f32
    }

    fn save_one(value: f32) -> Self {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_as_half_does_on_every_upper_half_and_around_ties() {
        for high in 0..=u16::MAX {
            for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits((u32::from(high) << 16) | low);
                assert_eq!(bf16::save_one(value).to_bits(), bf16::from_f32(value).to_bits(), "{value:e}");
            }
            let value = bf16::from_bits(high);
            assert!(value.is_nan() == Convert::<f32>::load_one(value).is_nan());
            if value.is_nan() {
                continue;
            }
            assert_eq!(Convert::<f32>::load_one(value).to_bits(), value.to_f32().to_bits());
        }
    }

    #[test]
    fn f16_slices_convert_as_single_values_do() {
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|value| !value.is_nan()).collect();
        let mut wide = vec![0.0_f32; all.len()];
        f16::load(&all, &mut wide);
        assert!(all.iter().zip(&wide).all(|(half, &single)| half.to_f32().to_bits() == single.to_bits()));
        let between: Vec<f32> = wide.iter().map(|value| value * 1.000_244_2).collect();
        let mut back = vec![f16::ZERO; between.len()];
        f16::save(&between, &mut back);
        assert!(back.iter().zip(&between).all(|(half, &v)| half.to_bits() == f16::from_f32(v).to_bits()));
    }

    #[test]
    fn a_large_integer_is_rounded_once() {
        // A tie of bf16 but for its last bit, which an f64 (or f32) in between would drop.
        let above = (1_i64 << 62) + (1 << 54) + 1;
        assert_eq!(
            <bf16 as Convert<i64>>::save_one(above).to_f64(),
            2.0_f64.powi(62) * (1.0 + 2.0_f64.powi(-7))
        );
        assert_eq!(<bf16 as Convert<i64>>::save_one(above - 1).to_f64(), 2.0_f64.powi(62));
        assert_eq!(<bf16 as Convert<i64>>::save_one(i64::MIN).to_f64(), -(2.0_f64.powi(63)));
        assert_eq!(<f16 as Convert<i64>>::save_one(2049).to_f64(), 2048.0);
    }
}
