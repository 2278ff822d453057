//! Rounding to a dtype by exact arithmetic on `f64`s: what results are compared with. Shares no code with the crate.

use gradpact::DType;

/// One IEEE-like format.
struct Format {
    /// Bits of the fraction.
    fraction: i32,
    /// The exponent of the smallest normal number.
    lowest: i32,
    /// The largest finite value.
    largest: f64,
    /// Whether what is larger becomes infinite; else it becomes the largest.
    infinities: bool,
}

impl Format {
    fn of(dtype: DType) -> Option<Self> {
        let format =
            |fraction, lowest, largest, infinities| Some(Self { fraction, lowest, largest, infinities });
        // Largest: (2 − 2^−fraction) · 2^highest; e4m3 spends its very last pattern on NaN.
        match dtype {
            DType::F8E4M3 => format(3, -6, 448.0, false),
            DType::F8E5M2 => format(2, -14, 57344.0, true),
            DType::F16 => format(10, -14, 65504.0, true),
            DType::BF16 => format(7, -126, 3.389_531_389_251_535_5e38, true),
            DType::F32 => format(23, -126, 3.402_823_466_385_288_6e38, true),
            DType::F64 => format(52, -1022, f64::MAX, true),
            _ => None,
        }
    }
}

/// 2 to the `exponent`, for exponents of normal `f64`s.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The exponent of the leading bit of a normal `f64`; of anything smaller, one lower than any dtype's but `f64`'s.
fn exponent_of(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// Rounds once to the nearest value of a floating dtype, ties to even.
pub fn round(dtype: DType, value: f64) -> f64 {
    let Some(format) = Format::of(dtype) else { return value };
    if value.is_nan() || value == 0.0 || dtype == DType::F64 {
        return value;
    }
    let overflow = if format.infinities { f64::INFINITY } else { format.largest };
    if value.is_infinite() {
        return overflow.copysign(value);
    }
    // The distance of neighbours here: a power of two, so that division and multiplication are exact.
    let step = power_of_two(exponent_of(value).max(format.lowest) - format.fraction);
    let rounded = (value / step).round_ties_even() * step;
    if rounded.abs() > format.largest { overflow.copysign(value) } else { rounded }
}

/// The stored bits of a value that the dtype holds exactly.
///
/// # Panics
/// If it does not.
pub fn bits(dtype: DType, value: f64) -> u64 {
    match dtype {
        DType::F64 => return value.to_bits(),
        DType::I64 => return value as i64 as u64,
        _ => {}
    }
    let Some(format) = Format::of(dtype) else { return value as i64 as u64 };
    let width = 8 * dtype.size_in_bytes() as i32;
    let sign = u64::from(value.is_sign_negative()) << (width - 1);
    // The exponent field of all ones and a fraction of zeros.
    let infinity = (1_u64 << (width - 1)) - (1 << format.fraction);
    if value.is_nan() {
        // All ones: a NaN in every format, and the only one of e4m3, which has no infinities.
        return (1 << (width - 1)) - 1;
    }
    if value.is_infinite() {
        return sign | infinity;
    }
    assert_eq!(round(dtype, value), value, "{value} is not a value of {dtype}");
    let exponent = exponent_of(value).max(format.lowest);
    let significand = (value.abs() / power_of_two(exponent - format.fraction)) as u64;
    // A normal number's leading one carries into the exponent field, whose lowest value is 1; a subnormal has none.
    sign | (significand + (((exponent - format.lowest) as u64) << format.fraction))
}

/// The narrowest floating dtype that holds every value of both.
///
/// # Panics
/// If one of them is not floating.
pub fn widest(a: DType, b: DType) -> DType {
    let holds = |wide: DType, narrow: DType| {
        let (Some(wide), Some(narrow)) = (Format::of(wide), Format::of(narrow)) else { return false };
        wide.fraction >= narrow.fraction
            && wide.lowest - wide.fraction <= narrow.lowest - narrow.fraction
            && wide.largest >= narrow.largest
            && wide.infinities >= narrow.infinities
    };
    let floats = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64];
    let widest = floats.into_iter().find(|&float| holds(float, a) && holds(float, b));
    #[expect(clippy::expect_used, reason = "part of a test")]
    widest.expect("two floating dtypes")
}

/// A sum formed in `dtype`, rounded at every step; of nothing it is zero.
pub fn sum_in(dtype: DType, terms: &[f64]) -> f64 {
    // The sum of two values of f32 or a narrower dtype, rounded to f64 first, then to that dtype, is rounded as if once:
    // f64 has more than twice as many bits (Figueroa 1995).
    let (first, rest) = terms.split_first().unwrap_or((&0.0, &[]));
    rest.iter().fold(*first, |sum, term| round(dtype, sum + term))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_follows_the_published_cases() {
        use DType::{BF16, F8E4M3, F8E5M2, F16, F32};
        // Cases of half-rs issues 25 and 26, and of the f8 formats' paper.
        for (dtype, value, expected) in [
            (F16, 65519.0, 65504.0),
            (F16, 65520.0, f64::INFINITY),
            (F16, 2_f64.powi(-25), 0.0),
            (F16, 2_f64.powi(-25) * 1.001, 2_f64.powi(-24)),
            (F16, 2049.0, 2048.0),
            (F16, 2051.0, 2052.0),
            (BF16, 0.269_140_877_029_227_2, 0.269_531_25),
            (BF16, 257.0, 256.0),
            (F32, 0.1, 0.100_000_001_490_116_12),
            (F8E4M3, 1e6, 448.0),
            (F8E4M3, f64::NEG_INFINITY, -448.0),
            (F8E5M2, 61439.0, 57344.0),
            (F8E5M2, 61440.0, f64::INFINITY),
        ] {
            assert_eq!(round(dtype, value), expected, "{value} as {dtype}");
        }
        assert_eq!(bits(F16, 1.0), 0x3c00);
        assert_eq!(bits(F16, 2_f64.powi(-24)), 1);
        assert_eq!(bits(F32, -0.0), 0x8000_0000);
        assert_eq!(bits(F32, f64::from(0.1_f32)), 0x3dcc_cccd);
        assert_eq!(bits(F8E4M3, 448.0), 0x7e);
    }
}
