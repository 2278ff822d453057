//! Arrays from a rule: evenly spaced, or random from a seed.

use core::f64::consts::TAU;

use crate::cpu::array::Array;
use crate::cpu::buffer::{Store, allocate, with_type};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// `start`, `start + step`, … up to but not including `end`.
pub(crate) fn arange(start: f64, end: f64, step: f64, dtype: DType) -> Result<Array> {
    let operation = "arange";
    let bad = |problem: String| Err(Error::Argument { operation, problem });
    if ![start, end, step].iter().all(|value| value.is_finite()) {
        return bad(format!("from {start} to {end} by {step}: all three must be finite"));
    }
    if step == 0.0 || ((end - start) / step < 0.0) {
        return bad(format!("from {start} to {end} by {step} never arrives"));
    }
    let len = ((end - start) / step).ceil();
    if len >= (1_u64 << 60) as f64 {
        return bad(format!("from {start} to {end} by {step} has too many elements"));
    }
    spaced(len as usize, dtype, |nth| start + nth * step)
}

/// `steps` values from `start` to `end`, both included.
pub(crate) fn linspace(start: f64, end: f64, steps: usize, dtype: DType) -> Result<Array> {
    // Divided first where the difference would overflow.
    let (last, span) = (steps.saturating_sub(1).max(1) as f64, end - start);
    let step = if span.is_finite() { span / last } else { end / last - start / last };
    // From both ends towards the middle, so that the last value is `end` exactly; as PyTorch does it.
    let last = steps.saturating_sub(1) as f64;
    let middle = (steps / 2) as f64;
    spaced(steps, dtype, |nth| {
        if nth < middle || steps == 1 { start + nth * step } else { end - (last - nth) * step }
    })
}

fn spaced(len: usize, dtype: DType, value: impl Fn(f64) -> f64) -> Result<Array> {
    let shape = Shape::from(len);
    shape.checked_len()?;
    let buffer = with_type!(dtype, T => {
        let mut out = allocate::<T>(len)?;
        for (nth, slot) in out.iter_mut().enumerate() {
            *slot = <T as Element>::from_f64(value(nth as f64));
        }
        Store::from_vec(out).into()
    });
    Ok(Array::from_buffer(buffer, shape))
}

/// Random numbers from a seed: Wyrand, by the crate `fastrand`. Not for secrets.
///
/// The same seed gives the same numbers again, but not necessarily with another version of this crate.
#[derive(Clone, Debug)]
pub struct Generator(fastrand::Rng);

impl Generator {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }
}

fn random(shape: &Shape, dtype: DType, mut draw: impl FnMut() -> f64) -> Result<Array> {
    let len = shape.checked_len()?;
    let buffer = with_type!(dtype, T => {
        let mut out = allocate::<T>(len)?;
        out.fill_with(|| <T as Element>::from_f64(draw()));
        Store::from_vec(out).into()
    });
    Ok(Array::from_buffer(buffer, shape.clone()))
}

fn floating(operation: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::DType { operation, expected: "a floating dtype".to_owned(), got: dtype })
}

/// Uniform in `[0, 1)`: as many random bits as the dtype has, so that 1 is never reached by rounding.
pub(crate) fn rand(shape: &Shape, dtype: DType, generator: &mut Generator) -> Result<Array> {
    floating("rand", dtype)?;
    let bits = match dtype {
        DType::F8E5M2 => 3,
        DType::F8E4M3 => 4,
        DType::BF16 => 8,
        DType::F16 => 11,
        DType::F32 => 24,
        _ => 53,
    };
    let unit = 2.0_f64.powi(-bits);
    random(shape, dtype, || (generator.0.u64(..) >> (64 - bits)) as f64 * unit)
}

/// Normally distributed with mean 0 and variance 1, each rounded once: pairs of uniform numbers by Box and Muller's
/// transform, of which the cosine is used.
pub(crate) fn randn(shape: &Shape, dtype: DType, generator: &mut Generator) -> Result<Array> {
    floating("randn", dtype)?;
    let unit = 2.0_f64.powi(-53);
    random(shape, dtype, || {
        // In (0, 1], so that the logarithm is finite.
        let radius = ((generator.0.u64(..) >> 11) + 1) as f64 * unit;
        let angle = (generator.0.u64(..) >> 11) as f64 * unit * TAU;
        (-2.0 * radius.ln()).sqrt() * angle.cos()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(array: Result<Array>) -> Vec<f64> {
        array.unwrap().to_f64_vec().unwrap()
    }

    #[test]
    fn evenly_spaced_values_start_and_end_where_they_should() {
        assert_eq!(values(arange(0.0, 5.0, 2.0, DType::I32)), [0.0, 2.0, 4.0]);
        assert_eq!(values(arange(1.0, -1.0, -0.5, DType::F16)), [1.0, 0.5, 0.0, -0.5]);
        assert_eq!(values(arange(3.0, 3.0, 1.0, DType::F32)), [0.0; 0]);
        assert_eq!(values(linspace(0.0, 1.0, 5, DType::F32)), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(values(linspace(0.1, 0.7, 10, DType::F64))[9], 0.7);
        assert_eq!(values(linspace(2.0, 3.0, 1, DType::F32)), [2.0]);
        assert_eq!(values(linspace(2.0, 3.0, 0, DType::F32)), [0.0; 0]);
    }

    #[test]
    fn ranges_that_never_end_are_errors() {
        assert!(arange(0.0, 1.0, 0.0, DType::F32).is_err());
        assert!(arange(0.0, 1.0, -1.0, DType::F32).is_err());
        assert!(arange(0.0, f64::INFINITY, 1.0, DType::F32).is_err());
        assert!(arange(0.0, f64::NAN, 1.0, DType::F32).is_err());
        assert!(arange(0.0, 1e300, 1.0, DType::F32).is_err());
        assert!(linspace(0.0, 1.0, usize::MAX, DType::F32).is_err());
    }

    #[test]
    fn uniform_numbers_stay_below_one_in_every_dtype() {
        for dtype in DType::FLOATS {
            let drawn = values(rand(&Shape::from(10_000), dtype, &mut Generator::new(1)));
            assert!(drawn.iter().all(|value| (0.0..1.0).contains(value)), "{dtype}");
            let mean = drawn.iter().sum::<f64>() / 10_000.0;
            // Of n-bit uniform numbers the mean is (1 − 2⁻ⁿ) / 2; five standard deviations are 0.0145.
            assert!((0.4..0.52).contains(&mean), "{dtype}: {mean}");
        }
        assert!(rand(&Shape::from(1), DType::I32, &mut Generator::new(1)).is_err());
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_they_are_normal() {
        let draw = |seed| values(randn(&Shape::from(20_000), DType::F64, &mut Generator::new(seed)));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let moment = |power: i32| draw(7).iter().map(|value| value.powi(power)).sum::<f64>() / 20_000.0;
        assert!(moment(1).abs() < 0.04 && (moment(2) - 1.0).abs() < 0.05);
        let mut generator = Generator::new(7);
        let first = values(randn(&Shape::from(2), DType::F64, &mut generator));
        assert_ne!(first, values(randn(&Shape::from(2), DType::F64, &mut generator)), "it goes on");
    }
}
