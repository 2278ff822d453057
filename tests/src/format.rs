//! Number formats from first principles: what a dtype rounds to, and which dtypes hold each other's values.
//!
//! Shares no code with the runtime, so that the reference can judge it.

use gradpact::DType;

/// How many bits of exponent and of fraction a float has. `None` for integers.
pub fn bits(dtype: DType) -> Option<(i32, i32)> {
    match dtype {
        DType::F8E4M3 => Some((4, 3)),
        DType::F8E5M2 => Some((5, 2)),
        DType::F16 => Some((5, 10)),
        DType::BF16 => Some((8, 7)),
        DType::F32 => Some((8, 23)),
        DType::F64 => Some((11, 52)),
        _ => None,
    }
}

/// The value that `dtype` stores for `value`: floats to nearest even, integers toward zero and wrapping.
pub fn round(dtype: DType, value: f64) -> f64 {
    match (bits(dtype), dtype) {
        (Some((11, 52)), _) => value,
        (Some((exponent, fraction)), _) => round_float(exponent, fraction, value),
        (None, DType::Bool) => f64::from(u8::from(value != 0.0)),
        (None, DType::U8) => f64::from(value as i64 as u8),
        (None, DType::I8) => f64::from(value as i64 as i8),
        (None, DType::I16) => f64::from(value as i64 as i16),
        (None, DType::I32) => f64::from(value as i64 as i32),
        (None, _) => value as i64 as f64,
    }
}

/// What is left of a value of `dtype` that was kept in `narrower`, if that has fewer bits and both are floats.
pub fn kept(narrower: Option<DType>, dtype: DType, value: f64) -> f64 {
    let narrows =
        |narrower: &DType| bits(dtype).is_some() && narrower.size_in_bytes() < dtype.size_in_bytes();
    narrower.filter(narrows).map_or(value, |narrower| round(narrower, value))
}

/// Rounds to the nearest multiple of the spacing that the format has around `value`.
fn round_float(exponent: i32, fraction: i32, value: f64) -> f64 {
    // The one format without infinities gives its last codes to numbers: up to 448, where it stays.
    let saturates = (exponent, fraction) == (4, 3);
    if value.is_nan() || value == 0.0 {
        return value;
    }
    let bias = (1 << (exponent - 1)) - 1;
    let largest = if saturates { 448.0 } else { (2.0 - power(-fraction)) * power(bias) };
    let spacing = power(floor_log2(value).max(1 - bias) - fraction);
    let rounded = if value.is_finite() { (value / spacing).round_ties_even() * spacing } else { value };
    match (rounded.abs() > largest, saturates) {
        (false, _) => rounded,
        (true, true) => largest.copysign(value),
        (true, false) => f64::INFINITY.copysign(value),
    }
}

/// `2^exponent`, exactly, down to the smallest subnormal.
pub fn power(exponent: i32) -> f64 {
    // Not `powi`, which divides by the inverse power, and that overflows where the result would be subnormal.
    f64::from_bits(if exponent < -1022 { 1 << (exponent + 1074) } else { ((exponent + 1023) as u64) << 52 })
}

/// The stored bits of a value that the dtype holds exactly; of a NaN all ones but the sign.
///
/// # Panics
/// If it does not hold it.
pub fn stored_bits(dtype: DType, value: f64) -> u64 {
    let (exponent, fraction) = match bits(dtype) {
        Some((11, _)) => return value.to_bits(),
        None => return value as i64 as u64,
        Some(format) => format,
    };
    let width = 8 * dtype.size_in_bytes() as i32;
    if value.is_nan() {
        return (1 << (width - 1)) - 1;
    }
    let sign = u64::from(value.is_sign_negative()) << (width - 1);
    if value.is_infinite() {
        // An exponent field of ones and a fraction of zeros.
        return sign | ((1 << (width - 1)) - (1 << fraction));
    }
    assert_eq!(round(dtype, value), value, "{value} is not a value of {dtype}");
    let lowest = 2 - (1 << (exponent - 1));
    let leading = if value == 0.0 { lowest } else { floor_log2(value).max(lowest) };
    let significand = (value.abs() / power(leading - fraction)) as u64;
    // A normal number's leading one carries into the exponent field, whose lowest value is 1; a subnormal has none.
    sign | (significand + (((leading - lowest) as u64) << fraction))
}

/// A sum formed in `dtype`, rounded at every step; of nothing it is zero.
pub fn sum_in(dtype: DType, terms: &[f64]) -> f64 {
    // The sum of two values of f32 or a narrower dtype, rounded to f64 first, then to that dtype, is rounded as if once:
    // f64 has more than twice as many bits (Figueroa 1995).
    let (first, rest) = terms.split_first().unwrap_or((&0.0, &[]));
    rest.iter().fold(*first, |sum, term| round(dtype, sum + term))
}

/// The exponent of the leading bit of a number that is not zero.
pub fn floor_log2(value: f64) -> i32 {
    match (value.to_bits() >> 52 & 0x7ff) as i32 {
        0 => 63 - (value.to_bits() << 1 >> 1).leading_zeros() as i32 - 1074,
        biased => biased - 1023,
    }
}

/// The exponent of the last bit of a number that is not zero.
pub fn last_bit(value: f64) -> i32 {
    let fraction = value.to_bits() & ((1 << 52) - 1);
    let trailing = if fraction == 0 { 52 } else { fraction.trailing_zeros() as i32 };
    if value.to_bits() >> 52 & 0x7ff == 0 { trailing - 1074 } else { floor_log2(value) - 52 + trailing }
}

/// The narrowest float that holds every value of all these floats; of two equally wide ones the more precise.
pub fn narrowest_float_for(floats: &[DType]) -> Option<DType> {
    let needed = floats.iter().filter_map(|&float| bits(float));
    let (exponent, fraction) = needed.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
    let holds = |dtype: &DType| bits(*dtype).is_some_and(|(e, f)| e >= exponent && f >= fraction);
    DType::FLOATS.into_iter().filter(holds).min_by_key(|&dtype| {
        let (exponent, fraction) = bits(dtype).unwrap_or_default();
        (exponent + fraction, -fraction)
    })
}

/// The dtype of an operation on two tensors. Of integers only signed ones are asked for.
pub fn meeting(a: DType, b: DType) -> DType {
    match (bits(a), bits(b)) {
        (None, None) if a.size_in_bytes() > b.size_in_bytes() => a,
        (None, None) => b,
        _ => narrowest_float_for(&[a, b]).unwrap_or(DType::F64),
    }
}

/// The dtype in which arithmetic of a dtype is done before its one rounding.
pub fn wide(dtype: DType) -> DType {
    match bits(dtype) {
        Some((_, fraction)) if fraction < 23 => DType::F32,
        Some(_) => dtype,
        None => DType::I64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_round_to_values_known_from_their_definitions() {
        for (dtype, value, expected) in [
            (DType::F16, 65519.0, 65504.0),
            (DType::F16, 65520.0, f64::INFINITY),
            (DType::F16, power(-25), 0.0),
            (DType::F16, power(-25) * 1.001, power(-24)),
            (DType::F16, 2049.0, 2048.0),
            (DType::F16, 2051.0, 2052.0),
            (DType::BF16, 257.0, 256.0),
            (DType::BF16, 259.0, 260.0),
            (DType::F32, 16_777_217.0, 16_777_216.0),
            (DType::F32, power(-150), 0.0),
            (DType::F32, 1e39, f64::INFINITY),
            (DType::F8E4M3, 464.0, 448.0),
            (DType::F8E4M3, -1e9, -448.0),
            (DType::F8E4M3, 17.0, 16.0),
            (DType::F8E4M3, power(-10), 0.0),
            (DType::F8E5M2, 61439.0, 57344.0),
            (DType::F8E5M2, 61440.0, f64::INFINITY),
            (DType::I8, 129.9, -127.0),
        ] {
            assert_eq!(round(dtype, value), expected, "{value} as {dtype}");
        }
    }

    #[test]
    fn stored_bits_are_those_of_the_format() {
        for (dtype, value, expected) in [
            (DType::F16, 1.0, 0x3c00),
            (DType::F16, power(-24), 1),
            (DType::F16, f64::NEG_INFINITY, 0xfc00),
            (DType::F32, -0.0, 0x8000_0000),
            (DType::F32, f64::from(0.1_f32), 0x3dcc_cccd),
            (DType::F8E4M3, 448.0, 0x7e),
        ] {
            assert_eq!(stored_bits(dtype, value), expected, "{value} as {dtype}");
        }
    }

    #[test]
    fn first_and_last_bit_of_a_number_are_found() {
        assert_eq!((floor_log2(-6.0), last_bit(-6.0)), (2, 1));
        assert_eq!((floor_log2(1.0), last_bit(1.0)), (0, 0));
        assert_eq!((floor_log2(power(-1070) * 3.0), last_bit(power(-1070) * 3.0)), (-1069, -1070));
    }

    #[test]
    fn eight_bit_floats_meet_in_f16_and_with_bf16_in_bf16() {
        use DType::{BF16, F8E4M3, F8E5M2, F16, F32};
        assert_eq!(narrowest_float_for(&[F8E4M3, F8E5M2]), Some(F16));
        assert_eq!(narrowest_float_for(&[F8E4M3, F8E5M2, BF16]), Some(BF16));
        assert_eq!(narrowest_float_for(&[F16, BF16]), Some(F32));
        assert_eq!(narrowest_float_for(&[]), None);
    }
}
