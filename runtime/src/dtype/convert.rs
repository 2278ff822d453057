//! Conversions that the standard library and `half` lack: from `f64` to the small floats with one rounding.

use super::{DType, bf16, f8e4m3, f8e5m2, f16};

/// Rounds to odd: exact values stay, others become the neighbour whose last bit is set.
///
/// Rounding the result to nearest in a format at least two bits narrower then gives what one rounding from the
/// `f64` would give (Boldo and Melquiond, "When double rounding is odd", 2005).
pub(super) fn f64_to_f32_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    if back == value || value.is_nan() {
        return nearest;
    }
    let toward_zero = if back.abs() > value.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
    f32::from_bits(toward_zero | 1)
}

/// Rounds an `f64` to `f16` once; `half::f16::from_f64` may go through `f32` and round twice.
pub fn f64_to_f16(value: f64) -> f16 {
    f16::from_f32(f64_to_f32_odd(value))
}

/// Rounds an `f64` to `bf16` once; `half::bf16::from_f64` drops the low bits before it rounds.
pub fn f64_to_bf16(value: f64) -> bf16 {
    bf16::from_f32(f64_to_f32_odd(value))
}

/// The value that `dtype` stores for `value`, as an `f64`: integers truncate and wrap, `bool` is 0 or 1.
pub fn round_to(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::Bool => f64::from(u8::from(value != 0.0)),
        DType::U8 => f64::from(value as i64 as u8),
        DType::I8 => f64::from(value as i64 as i8),
        DType::I16 => f64::from(value as i64 as i16),
        DType::I32 => f64::from(value as i64 as i32),
        DType::I64 => value as i64 as f64,
        DType::F8E4M3 => f64::from(f8e4m3::from_f32(f64_to_f32_odd(value)).to_f32()),
        DType::F8E5M2 => f64::from(f8e5m2::from_f32(f64_to_f32_odd(value)).to_f32()),
        DType::F16 => f64_to_f16(value).to_f64(),
        DType::BF16 => f64_to_bf16(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        DType::F64 => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f64_to_f16_rounds_once() {
        // PyTorch goes through f32 and gets 1.0 here.
        let just_above_a_tie = 1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-30);
        assert_eq!(f64_to_f16(just_above_a_tie).to_f64(), 1.000_976_562_5);
        assert_eq!(f64_to_f16(1.0 + 2.0_f64.powi(-11)).to_f64(), 1.0);
        assert_eq!(f64_to_bf16(1.0 + 2.0_f64.powi(-8) + 2.0_f64.powi(-40)).to_f64(), 1.0 + 2.0_f64.powi(-7));
    }

    #[test]
    fn f64_values_outside_the_range_of_f32_round_correctly() {
        assert_eq!(f64_to_f16(1e300), f16::INFINITY);
        assert_eq!(f64_to_bf16(-1e300), bf16::NEG_INFINITY);
        assert_eq!(f64_to_bf16(1e-300).to_bits(), 0);
        assert_eq!(f64_to_f16(-1e-300).to_bits(), 0x8000);
        assert!(f64_to_f16(f64::NAN).is_nan());
    }

    #[test]
    fn f32_values_round_as_the_published_cases_say() {
        // Cases of half-rs issues 25 and 26 and their like.
        for (value, expected) in [
            (65519.0, 65504.0),
            (65520.0, f64::INFINITY),
            (2.0_f64.powi(-24), 2.0_f64.powi(-24)),
            (2.0_f64.powi(-25), 0.0),
            (2.0_f64.powi(-25) * (1.0 + 2.0_f64.powi(-10)), 2.0_f64.powi(-24)),
            (255.99, 256.0),
            (2049.0, 2048.0),
            (2051.0, 2052.0),
        ] {
            assert_eq!(round_to(DType::F16, value), expected, "{value} as f16");
            assert_eq!(f16::from_f32(value as f32).to_f64(), expected, "{value} from f32 as f16");
        }
        assert_eq!(round_to(DType::BF16, 0.269_140_877_029_227_2), 0.269_531_25);
        assert_eq!(round_to(DType::BF16, 257.0), 256.0);
    }
}
