//! Derivatives of noisy functions of one number, with an honest uncertainty. No tensors here.

use crate::error::Result;

/// What a function gave at one point: several numbers at once.
pub(super) struct Evaluation {
    /// How far the point is from where the derivative is wanted.
    pub(super) offset: f64,
    pub(super) values: Vec<f64>,
    /// The largest error that each value may have.
    pub(super) noise: Vec<f64>,
}

/// A derivative, and how wrong it may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope {
    pub(super) value: f64,
    pub(super) uncertainty: f64,
}

/// Degrees 2, 4 and 6: from two, four and six points beside the middle.
const DEGREES: usize = 3;

/// The derivative at offset 0 of the polynomial through the middle and the points at these offsets, as a weight for each
/// point's difference to the middle.
///
/// Fornberg, "Generation of Finite Difference Formulas on Arbitrarily Spaced Grids", 1988, for the first derivative.
fn weights(offsets: &[f64]) -> Vec<f64> {
    let weight = |(nth, &offset): (usize, &f64)| {
        let others = offsets.iter().enumerate().filter(|&(other, _)| other != nth);
        others.map(|(_, &other)| other / (other - offset)).product::<f64>() / offset
    };
    offsets.iter().enumerate().map(weight).collect()
}

/// A finite difference formula on some of the points.
struct Formula<'a> {
    points: Vec<&'a Evaluation>,
    weights: Vec<f64>,
}

impl<'a> Formula<'a> {
    fn new(levels: &'a [[Evaluation; 2]]) -> Self {
        let points: Vec<&Evaluation> = levels.iter().flatten().collect();
        let weights = weights(&points.iter().map(|point| point.offset).collect::<Vec<_>>());
        Self { points, weights }
    }

    /// The derivative of number `nth`, and the error that the noise of the points can make in it.
    fn apply(&self, middle: &Evaluation, nth: usize) -> (f64, f64) {
        let weighted = || self.points.iter().zip(&self.weights);
        let value = weighted().map(|(point, weight)| weight * (point.values[nth] - middle.values[nth])).sum();
        let noise = weighted().map(|(point, weight)| weight.abs() * point.noise[nth]).sum::<f64>();
        let of_middle = self.weights.iter().sum::<f64>().abs() * middle.noise[nth];
        (value, noise + of_middle)
    }
}

/// The derivatives at `middle`, from evaluations at plus and minus each step.
///
/// `steps` fall, by half each time. It ends when each number's uncertainty is below `rtol` of it, or cannot fall any more because
/// of noise; when `evaluate` gives `None`; or with the steps. Values that are not finite are passed over.
pub(super) fn slopes(
    middle: &Evaluation,
    steps: impl Iterator<Item = f64>,
    rtol: f64,
    evaluate: &mut dyn FnMut(f64) -> Result<Option<Evaluation>>,
) -> Result<Vec<Slope>> {
    let count = middle.values.len();
    let mut best = vec![Slope { value: f64::NAN, uncertainty: f64::INFINITY }; count];
    let mut previous = vec![[f64::NAN; DEGREES]; count];
    let mut levels: Vec<[Evaluation; 2]> = Vec::new();
    for step in steps {
        let (Some(plus), Some(minus)) = (evaluate(step)?, evaluate(-step)?) else { break };
        levels.push([plus, minus]);
        let formulas: Vec<_> = (1..=DEGREES.min(levels.len()))
            .map(|used| Formula::new(&levels[levels.len() - used..]))
            .collect();
        let mut floor = vec![0.0; count];
        for nth in 0..count {
            let row = extrapolate(&formulas, middle, nth, &previous[nth], &mut best[nth]);
            previous[nth] = row;
            floor[nth] = formulas[0].apply(middle, nth).1;
        }
        let largest = best.iter().map(|slope| slope.value.abs()).fold(0.0, f64::max);
        let is_done = |(slope, floor): (&Slope, &f64)| {
            slope.uncertainty <= rtol * slope.value.abs().max(0.01 * largest) || *floor > slope.uncertainty
        };
        if best.iter().zip(&floor).all(is_done) {
            break;
        }
    }
    Ok(best)
}

/// One row of Ridders' tableau: estimates of rising degree at the smallest step so far. The best estimate is replaced by
/// a better one.
fn extrapolate(
    formulas: &[Formula<'_>],
    middle: &Evaluation,
    nth: usize,
    previous: &[f64; DEGREES],
    best: &mut Slope,
) -> [f64; DEGREES] {
    let mut row = [f64::NAN; DEGREES];
    for (degree, formula) in formulas.iter().enumerate() {
        let (value, noise) = formula.apply(middle, nth);
        row[degree] = value;
        let Some(lower) = degree.checked_sub(1) else { continue };
        let truncation = (value - row[lower]).abs().max((value - previous[lower]).abs());
        let uncertainty = truncation + noise;
        // False for what is not finite; `max` above may have hidden one of two.
        if uncertainty < best.uncertainty && row[lower].is_finite() && previous[lower].is_finite() {
            *best = Slope { value, uncertainty };
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halving(from: f64) -> impl Iterator<Item = f64> {
        (0..30).map(move |nth| from / 2.0_f64.powi(nth))
    }

    /// The derivative of `f` at `x`, whose values are rounded to multiples of `2 noise`.
    fn slope_of(f: impl Fn(f64) -> f64, x: f64, noise: f64) -> Slope {
        let rounded =
            |value: f64| if noise > 0.0 { (value / (2.0 * noise)).round() * 2.0 * noise } else { value };
        let at = |offset: f64| Evaluation {
            offset,
            values: vec![rounded(f(x + offset))],
            noise: vec![noise.max(1e-15)],
        };
        slopes(&at(0.0), halving(0.25), 1e-9, &mut |offset| Ok(Some(at(offset)))).unwrap()[0]
    }

    #[test]
    fn the_formula_is_exact_for_polynomials_on_uneven_points() {
        let offsets = [0.5, -0.25, 1.0, -1.5];
        let weights = weights(&offsets);
        let slope = |f: fn(f64) -> f64| -> f64 {
            weights.iter().zip(offsets).map(|(weight, offset)| weight * (f(offset) - f(0.0))).sum()
        };
        assert!((slope(|x| 3.0 * x) - 3.0).abs() < 1e-14);
        assert!(slope(|x| x.powi(2) - x.powi(3) + 5.0 * x.powi(4)).abs() < 1e-14);
    }

    #[test]
    fn the_derivative_is_within_its_uncertainty_with_noise_and_without() {
        for noise in [0.0, 1e-7, 1e-4, 1e-3, 1e-2] {
            for nth in 0..40 {
                let x = f64::from(nth) * 0.07 - 1.4;
                let slope = slope_of(f64::sin, x, noise);
                let error = (slope.value - x.cos()).abs();
                assert!(error <= slope.uncertainty, "{noise} {x}: {error} {slope:?}");
                assert!(slope.uncertainty <= 40.0 * noise + 1e-7, "{noise} {x}: {slope:?}");
            }
        }
    }

    #[test]
    fn points_where_the_function_is_not_finite_are_passed_over() {
        let slope = slope_of(f64::ln, 0.01, 0.0);
        assert!((slope.value - 100.0).abs() <= slope.uncertainty && slope.uncertainty < 1e-3, "{slope:?}");
        let nowhere = slope_of(|_| f64::NAN, 0.0, 0.0);
        assert!(nowhere.value.is_nan() && nowhere.uncertainty == f64::INFINITY);
    }

    #[test]
    fn steps_shrink_until_they_fit_between_the_point_and_a_kink() {
        let slope = slope_of(|x| x.max(0.0), 0.01, 1e-9);
        assert!((slope.value - 1.0).abs() <= slope.uncertainty && slope.uncertainty < 1e-5, "{slope:?}");
    }
}
