//! Elementary functions of an `f32`, without branches, so that the compiler vectorizes loops over them. `f64` uses libm.
//!
//! They are computed in `f64`, where the approximations are good to 10⁻⁹ and overflow and underflow of an `f32` are no concern,
//! and rounded once: every result is within 0.51 units in the last place of the true value, subnormal ones too, and where the
//! true value is infinite, zero or no number, so is the result. Polynomials were fitted at Chebyshev nodes, to the errors stated.

use core::f64::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

/// Where no `f32` is left on either side: e^±200.
const RANGE: f64 = 200.0;

/// Added to a small `f64`, this rounds it to an integer, which stands in the lowest bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// `Σ cᵢ·xⁱ`.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.into_iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// `eˣ = 2ⁿ · eʳ` with `|r| ≤ ½·ln 2`; 0 or infinite where it is so in an `f32`.
#[inline(always)]
fn exp_wide(x: f64) -> f64 {
    let shifted = x * LOG2_E + ROUND;
    let r = x - (shifted - ROUND) * LN_2;
    // Relative error 6·10⁻¹¹.
    let fraction = polynomial(
        r,
        [
            0.999_999_999_959_555_8,
            0.999_999_999_995_508_3,
            0.500_000_010_774_117_7,
            0.166_666_667_863_232_75,
            0.041_666_218_285_980_23,
            0.008_333_283_534_787_13,
            0.001_394_858_054_354_333_9,
            0.000_199_075_718_730_699_1,
        ],
    );
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0_f64.to_bits()));
    let result = fraction * power;
    let result = if x > RANGE { f64::INFINITY } else { result };
    if x < -RANGE { 0.0 } else { result }
}

/// `eˣ`.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    exp_wide(x.into()) as f32
}

/// `1 / (1 + e⁻ˣ)`, with an exponential that cannot overflow.
#[inline(always)]
fn sigmoid_wide(x: f64) -> f64 {
    let small = exp_wide(-x.abs());
    (if x < 0.0 { small } else { 1.0 }) / (1.0 + small)
}

/// `1 / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    sigmoid_wide(x.into()) as f32
}

/// `x / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn silu(x: f32) -> f32 {
    let x = f64::from(x);
    (x * sigmoid_wide(x)) as f32
}

/// The hyperbolic tangent: `(1 − e⁻²ˣ) / (1 + e⁻²ˣ)`, near zero the first terms of its series.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let x = f64::from(x);
    let e = exp_wide(-2.0 * x.abs());
    let quotient = ((1.0 - e) / (1.0 + e)).copysign(x);
    let square = x * x;
    let terms = [1.0, -1.0 / 3.0, 2.0 / 15.0, -17.0 / 315.0, 62.0 / 2835.0];
    let series = x * polynomial(square, terms);
    (if square < 0.01 { series } else { quotient }) as f32
}

/// The natural logarithm: `x = 2ⁿ·m` with m around 1, `ln m = 2·artanh((m − 1) / (m + 1))`.
#[inline(always)]
pub(super) fn ln(x: f32) -> f32 {
    // As an f64 even a subnormal f32 has a leading one. Counted from √½ on, exponents change in the middle.
    const MIDDLE: u64 = FRAC_1_SQRT_2.to_bits();
    const EXPONENT: u64 = 0xfff << 52;
    // 2⁵², whose lowest bit is a one.
    const INTEGER: f64 = 4_503_599_627_370_496.0;
    let bits = f64::from(x).to_bits().wrapping_sub(MIDDLE) & EXPONENT;
    let m = f64::from_bits(f64::from(x).to_bits().wrapping_sub(bits));
    // n, from −150 to 128, counted from 512 on to be positive.
    let shifted = bits.wrapping_add(512 << 52) >> 52;
    let n = f64::from_bits(shifted | INTEGER.to_bits()) - (INTEGER + 512.0);
    let s = (m - 1.0) / (m + 1.0);
    // Relative error 5·10⁻¹².
    let artanh = polynomial(
        s * s,
        [
            1.000_000_000_004_225_3,
            0.333_333_326_175_740_6,
            0.200_001_935_943_438_57,
            0.142_674_457_224_933_16,
            0.118_097_283_198_824_2,
        ],
    );
    let result = (n * LN_2 + 2.0 * s * artanh) as f32;
    let result = if x == f32::INFINITY { x } else { result };
    let result = if x == 0.0 { f32::NEG_INFINITY } else { result };
    if x < 0.0 || x.is_nan() { f32::NAN } else { result }
}

/// The error function up to 1: `x · P(x²)`, with a relative error of 4·10⁻¹¹.
#[inline(always)]
fn erf_near(x: f64) -> f64 {
    x * polynomial(
        x * x,
        [
            1.128_379_167_061_543_5,
            -0.376_126_384_680_282_9,
            0.112_837_824_952_298_02,
            -0.026_865_430_727_272_425,
            0.005_221_031_806_797_378,
            -0.000_848_408_039_090_463_4,
            0.000_112_659_589_245_310_86,
            -0.000_009_667_044_294_739_274,
        ],
    )
}

/// `1 − erf(t)` from 1 on: `u · P(u) · exp(−t²)` with `u = 1 / (t + 2.45)` and a relative error of 7·10⁻¹⁰.
#[inline(always)]
fn erfc_far(t: f64) -> f64 {
    let u = 1.0 / (t + 2.45);
    let factor = polynomial(
        u,
        [
            0.564_202_580_004_169,
            1.381_426_264_729_428_6,
            3.128_041_767_327_443_4,
            5.843_615_658_132_001,
            14.447_528_511_556_708,
            -11.927_691_397_190_65,
            114.016_440_122_986_9,
            -292.375_708_156_959_9,
            210.752_889_048_706_35,
        ],
    );
    let result = u * factor * exp_wide(-t * t);
    // Beyond the range of the fit there is no f32 left.
    if t > 10.3 { 0.0 } else { result }
}

/// The error function.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let x = f64::from(x);
    let far = (1.0 - erfc_far(x.abs())).copysign(x);
    (if x.abs() < 1.0 { erf_near(x) } else { far }) as f32
}

/// `x · Φ(x)`, with `Φ(x) = ½ · (1 + erf(x/√2))`, from −√2 down as `½ · erfc(−x/√2)`, where nothing cancels.
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let x = f64::from(x);
    let t = x * FRAC_1_SQRT_2;
    let tail = 0.5 * erfc_far(t.abs());
    let far = if x < 0.0 { tail } else { 1.0 - tail };
    (x * if t.abs() < 1.0 { 0.5 + 0.5 * erf_near(t) } else { far }) as f32
}

/// Up to here [`sin`] and [`cos`] are good: beyond, more digits of π are needed.
pub(super) const TURNS: f32 = 1e8;

/// `x − n·π/2` for the nearest integer n, and n in the lowest bits.
#[inline(always)]
fn turned(x: f64) -> (f64, u64) {
    // π/2 in two parts. The first has 25 bits, so that its product with n is exact.
    const HIGH: f64 = 1.570_796_310_901_641_8;
    const LOW: f64 = 1.589_325_477_352_819_6e-8;
    let shifted = x * core::f64::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    (x - n * HIGH - n * LOW, shifted.to_bits())
}

/// Sine or cosine of `r`, up to π/4, where `n` is even or odd; negative in the second half of every four.
#[inline(always)]
fn quarter(r: f64, n: u64) -> f32 {
    let square = r * r;
    // The series, to an error of 10⁻¹⁰ where it is largest.
    let sines = [1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0];
    let cosines = [1.0, -1.0 / 2.0, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40_320.0, -1.0 / 3_628_800.0];
    let (sine, cosine) = (r * polynomial(square, sines), polynomial(square, cosines));
    let value = if n & 1 == 0 { sine } else { cosine };
    f64::from_bits(value.to_bits() ^ ((n & 2) << 62)) as f32
}

/// The sine, up to [`TURNS`].
#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (r, n) = turned(x.into());
    quarter(r, n)
}

/// The cosine, up to [`TURNS`].
#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (r, n) = turned(x.into());
    quarter(r, n.wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 16381st f32 of either sign, and those where something changes.
    fn all_sorts() -> impl Iterator<Item = f32> {
        let special = [0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000];
        let edges =
            [0.1, 1.0, core::f32::consts::SQRT_2, 88.72, 88.73, 103.9, 104.0, 87.3, 14.5, 17.0, 200.0];
        let around = edges
            .map(f32::to_bits)
            .into_iter()
            .chain(special)
            .flat_map(|bits| (bits.saturating_sub(3)..bits + 4).flat_map(|bits| [bits, bits | 1 << 31]));
        (0..=u32::MAX).step_by(16_381).chain(around).map(f32::from_bits)
    }

    /// The distance of `got` from `exact` in units of the last place of an f32 of that size.
    fn ulps(got: f32, exact: f64) -> f64 {
        let rounded = exact as f32;
        if got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan()) {
            return 0.0;
        }
        if !got.is_finite() || !rounded.is_finite() {
            return f64::INFINITY;
        }
        let exponent = rounded.abs().max(f32::MIN_POSITIVE).log2().floor() as i32;
        (f64::from(got) - exact).abs() / 2.0_f64.powi(exponent - 23)
    }

    fn check(name: &str, function: fn(f32) -> f32, exact: fn(f64) -> f64, limit: f64) {
        for x in all_sorts() {
            let (got, exact) = (function(x), exact(x.into()));
            let error = ulps(got, exact);
            assert!(error <= limit, "{name}({x:e}) is {got:e}, exactly {exact:e}: {error} ulp");
        }
    }

    #[test]
    fn every_function_is_within_half_a_unit_and_a_bit_over_the_whole_range() {
        check("exp", exp, f64::exp, 0.51);
        check("ln", ln, f64::ln, 0.51);
        check("tanh", tanh, f64::tanh, 0.51);
        check("sigmoid", sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 0.51);
        check("erf", erf, libm::erf, 0.51);
        let silu_of = |x: f64| if x == f64::NEG_INFINITY { f64::NAN } else { x / (1.0 + (-x).exp()) };
        check("silu", silu, silu_of, 0.51);
        let gelu_of = |x: f64| 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2);
        check("gelu", gelu, gelu_of, 0.51);
        check("sin", |x| if x.abs() < TURNS { sin(x) } else { 0.0 }, |x| sin_up_to_turns(x, f64::sin), 0.52);
        check("cos", |x| if x.abs() < TURNS { cos(x) } else { 0.0 }, |x| sin_up_to_turns(x, f64::cos), 0.52);
    }

    fn sin_up_to_turns(x: f64, function: fn(f64) -> f64) -> f64 {
        if x.abs() < TURNS.into() { function(x) } else { 0.0 }
    }

    #[test]
    fn signs_of_zero_and_exact_values_are_kept() {
        for function in [tanh, erf, silu, gelu, sin] {
            assert_eq!(function(0.0).to_bits(), 0.0_f32.to_bits());
            assert_eq!(function(-0.0).to_bits(), (-0.0_f32).to_bits());
        }
        assert_eq!([exp(0.0), cos(0.0), ln(1.0), sigmoid(0.0)], [1.0, 1.0, 0.0, 0.5]);
        assert_eq!([tanh(f32::INFINITY), erf(f32::NEG_INFINITY), ln(0.0)], [1.0, -1.0, f32::NEG_INFINITY]);
    }
}
