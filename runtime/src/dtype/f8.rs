//! The two 8-bit floating-point types, `f8e4m3` and `f8e5m2`: storage and conversion, no arithmetic.
//!
//! Source: "FP8 Formats for Deep Learning" (arXiv 2209.05433); overflow as PyTorch 2.14.1 was measured to do it.

use core::fmt;

/// Rounds an `f32` to a float of `EXPONENT` and `FRACTION` bits, to nearest even, keeping subnormals.
///
/// Returns the sign bit and the magnitude bits; a magnitude past the largest finite one is returned as it comes
/// out of the arithmetic, for the caller to saturate or to turn into an infinity.
fn round_magnitude<const EXPONENT: u32, const FRACTION: u32>(value: f32) -> (u8, u32) {
    let sign = u8::from(value.is_sign_negative()) << 7;
    let bias = (1_i32 << (EXPONENT - 1)) - 1;
    let bits = value.to_bits() & 0x7fff_ffff;
    let exponent = (bits >> 23) as i32 - 127;
    // Below the smallest normal exponent the spacing stays that of the subnormals.
    let lowest = 1 - bias;
    let dropped = 23 - FRACTION + (lowest - exponent).max(0) as u32;
    if dropped > 25 {
        return (sign, 0);
    }
    let significand = (bits & 0x007f_ffff) | 0x0080_0000;
    let half = 1_u32 << (dropped - 1);
    let odd = (significand >> dropped) & 1;
    let rounded = (significand + half - 1 + odd) >> dropped;
    if exponent < lowest {
        // A subnormal that rounds up to the smallest normal has just the bits of that normal.
        (sign, rounded)
    } else {
        // Adding lets a carry out of the fraction move into the exponent.
        (sign, (((exponent + bias - 1) as u32) << FRACTION) + rounded)
    }
}

/// The value of magnitude bits in a format of `FRACTION` fraction bits and exponent bias `bias`.
fn magnitude_to_f32<const FRACTION: u32>(bits: u8, bias: i32) -> f32 {
    let fraction = f32::from(bits & ((1 << FRACTION) - 1));
    let exponent = i32::from(bits >> FRACTION);
    let scale = |power: i32| f32::from_bits(((power + 127) as u32) << 23);
    if exponent == 0 {
        fraction * scale(1 - bias - FRACTION as i32)
    } else {
        (fraction + f32::from(1_u8 << FRACTION)) * scale(exponent - bias - FRACTION as i32)
    }
}

/// An 8-bit float with 4 exponent and 3 fraction bits: up to ±448, no infinities, one NaN of each sign.
///
/// What is too large becomes ±448, infinities included, as in PyTorch 2.14.1.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
#[allow(non_camel_case_types, reason = "named like f16 and f32, which it is used beside")]
pub struct f8e4m3(u8);

impl f8e4m3 {
    /// The value stored as `bits`.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The stored bits.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Rounds to nearest even; past ±448 it saturates.
    pub fn from_f32(value: f32) -> Self {
        if value.is_nan() {
            return Self(0x7f | (u8::from(value.is_sign_negative()) << 7));
        }
        let (sign, magnitude) = round_magnitude::<4, 3>(value);
        Self(sign | magnitude.min(0x7e) as u8)
    }

    /// The same value, exactly.
    pub fn to_f32(self) -> f32 {
        let magnitude = self.0 & 0x7f;
        let value = if magnitude == 0x7f { f32::NAN } else { magnitude_to_f32::<3>(magnitude, 7) };
        if self.0 & 0x80 == 0 { value } else { -value }
    }
}

/// An 8-bit float with 5 exponent and 2 fraction bits: a truncated `f16`, with infinities.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
#[allow(non_camel_case_types, reason = "named like f16 and f32, which it is used beside")]
pub struct f8e5m2(u8);

impl f8e5m2 {
    /// The value stored as `bits`.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The stored bits.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Rounds to nearest even; from 61440 on it is infinite.
    pub fn from_f32(value: f32) -> Self {
        if value.is_nan() {
            return Self(0x7f | (u8::from(value.is_sign_negative()) << 7));
        }
        let (sign, magnitude) = round_magnitude::<5, 2>(value);
        Self(sign | magnitude.min(0x7c) as u8)
    }

    /// The same value, exactly.
    pub fn to_f32(self) -> f32 {
        let magnitude = self.0 & 0x7f;
        let value = match magnitude {
            0x7c => f32::INFINITY,
            0x7d.. => f32::NAN,
            _ => magnitude_to_f32::<2>(magnitude, 15),
        };
        if self.0 & 0x80 == 0 { value } else { -value }
    }
}

macro_rules! compares_and_prints_by_value {
    ($($float:ident)*) => {$(
        impl PartialEq for $float {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }
        impl PartialOrd for $float {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }
        impl fmt::Debug for $float {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }
        impl fmt::Display for $float {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )*};
}
compares_and_prints_by_value!(f8e4m3 f8e5m2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_a_round_trip_through_f32() {
        for bits in 0..=u8::MAX {
            let small = f8e4m3::from_bits(bits);
            if !small.to_f32().is_nan() {
                assert_eq!(f8e4m3::from_f32(small.to_f32()).to_bits(), bits);
            }
            let wide = f8e5m2::from_bits(bits);
            if !wide.to_f32().is_nan() {
                assert_eq!(f8e5m2::from_f32(wide.to_f32()).to_bits(), bits);
            }
        }
    }

    #[test]
    fn f8e5m2_has_the_values_of_the_upper_byte_of_f16() {
        for bits in 0..=u8::MAX {
            let value = half::f16::from_bits(u16::from(bits) << 8).to_f32();
            let ours = f8e5m2::from_bits(bits).to_f32();
            assert!(value == ours || (value.is_nan() && ours.is_nan()), "{bits:#x}");
        }
    }

    #[test]
    fn ties_go_to_even_and_overflow_saturates_or_is_infinite() {
        assert_eq!(f8e4m3::from_f32(464.0).to_f32(), 448.0);
        assert_eq!(f8e4m3::from_f32(f32::INFINITY).to_f32(), 448.0);
        assert_eq!(f8e5m2::from_f32(61439.0).to_f32(), 57344.0);
        assert_eq!(f8e5m2::from_f32(61440.0).to_f32(), f32::INFINITY);
        // Half of the smallest subnormal goes to zero, a little more does not.
        assert_eq!(f8e4m3::from_f32(2.0_f32.powi(-10)).to_bits(), 0);
        assert_eq!(f8e4m3::from_f32(2.0_f32.powi(-10) * 1.01).to_bits(), 1);
        assert_eq!(f8e5m2::from_f32(-(2.0_f32.powi(-17))).to_bits(), 0x80);
    }
}
