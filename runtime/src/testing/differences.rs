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
/// First at `near`, a small step, where only a rough estimate can be had: larger steps that contradict it went across a
/// kink or a jump, and do not count. Then at `steps`, which fall, by half each time. It ends when each number's
/// uncertainty is below `rtol` of it, or cannot fall any more because of noise; when `evaluate` gives `None`; or with
/// the steps. Values that are not finite are passed over.
pub(super) fn slopes(
    middle: &Evaluation,
    near: f64,
    steps: impl Iterator<Item = f64>,
    rtol: f64,
    evaluate: &mut dyn FnMut(f64) -> Result<Option<Evaluation>>,
) -> Result<Vec<Slope>> {
    let count = middle.values.len();
    let mut tableaux = vec![Tableau::new(); count];
    if let (Some(plus), Some(minus)) = (evaluate(near)?, evaluate(-near)?) {
        let level = [[plus, minus]];
        let formula = Formula::new(&level);
        tableaux.iter_mut().enumerate().for_each(|(nth, tableau)| tableau.expect(formula.apply(middle, nth)));
    }
    let mut levels: Vec<[Evaluation; 2]> = Vec::new();
    for step in steps {
        let (Some(plus), Some(minus)) = (evaluate(step)?, evaluate(-step)?) else { break };
        levels.push([plus, minus]);
        let used = 1..=DEGREES.min(levels.len());
        let formulas: Vec<_> = used.map(|used| Formula::new(&levels[levels.len() - used..])).collect();
        for (nth, tableau) in tableaux.iter_mut().enumerate() {
            tableau.extend(&formulas.iter().map(|formula| formula.apply(middle, nth)).collect::<Vec<_>>());
        }
        let largest = tableaux.iter().map(|tableau| tableau.best.value.abs()).fold(0.0, f64::max);
        if tableaux.iter().all(|tableau| tableau.is_done(rtol, largest)) {
            break;
        }
    }
    Ok(tableaux.into_iter().map(|tableau| tableau.best).collect())
}

/// The estimates of one derivative: Ridders' tableau, of which the last row is needed.
#[derive(Clone)]
struct Tableau {
    /// Values and noise at the smallest step so far, by rising degree.
    row: Vec<(f64, f64)>,
    best: Slope,
    /// What the derivative is roughly.
    expected: Slope,
}

impl Tableau {
    fn new() -> Self {
        let unknown = Slope { value: f64::NAN, uncertainty: f64::INFINITY };
        Self { row: Vec::new(), best: unknown, expected: Slope { value: 0.0, ..unknown } }
    }

    /// Notes a rough estimate: it may be off by a quarter, beside its noise.
    fn expect(&mut self, (value, noise): (f64, f64)) {
        if value.is_finite() {
            self.expected = Slope { value, uncertainty: 0.25 * value.abs() + noise };
        }
    }

    /// Adds the estimates at the next smaller step.
    fn extend(&mut self, row: &[(f64, f64)]) {
        for (degree, &(value, noise)) in row.iter().enumerate() {
            match degree.checked_sub(1) {
                // The truncation error is not more than the distance to both estimates of the degree below.
                Some(lower) => {
                    let distances = [value - row[lower].0, value - self.row[lower].0].map(f64::abs);
                    self.propose(value, distances, noise);
                }
                // Of the lowest degree: four thirds of the distance is that of the larger step, a third that of the smaller.
                // Noise may have made the distance too small.
                None => {
                    if let Some(&(larger, noise_of_larger)) = self.row.first() {
                        let distance = (value - larger).abs();
                        self.propose(larger, [distance * 4.0 / 3.0; 2], noise_of_larger + 0.5 * noise);
                        self.propose(value, [distance; 2], noise);
                    }
                }
            }
        }
        self.row = row.to_vec();
    }

    fn propose(&mut self, value: f64, [a, b]: [f64; 2], noise: f64) {
        // Not `max`, which hides what is not a number.
        let uncertainty = if a > b { a } else { b } + noise;
        let is_possible = (value - self.expected.value).abs() <= uncertainty + self.expected.uncertainty;
        if a.is_finite() && is_possible && uncertainty < self.best.uncertainty {
            self.best = Slope { value, uncertainty };
        }
    }

    /// Whether the estimate is good enough, or smaller steps would only add noise.
    fn is_done(&self, rtol: f64, largest: f64) -> bool {
        let Slope { value, uncertainty } = self.best;
        let noise = self.row.first().map_or(0.0, |&(_, noise)| noise);
        uncertainty <= rtol * value.abs().max(0.01 * largest) || noise > uncertainty
    }
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
        slopes(&at(0.0), noise.max(1e-12).sqrt(), halving(0.25), 1e-9, &mut |offset| Ok(Some(at(offset))))
            .unwrap()[0]
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
                assert!(error <= slope.uncertainty + 1e-12, "{noise} {x}: {error} {slope:?}");
                assert!(slope.uncertainty <= 100.0 * noise + 1e-7, "{noise} {x}: {slope:?}");
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
        // Across a kink in the middle of a symmetric function all large steps agree, on a slope of zero.
        let slope = slope_of(f64::abs, 0.01, 1e-9);
        assert!((slope.value - 1.0).abs() <= slope.uncertainty && slope.uncertainty < 1e-5, "{slope:?}");
    }

    #[test]
    fn at_a_jump_nothing_is_claimed() {
        let slope = slope_of(|x| if x > 0.0 { 1.0 } else { -1.0 }, 0.0, 1e-3);
        assert!(slope.uncertainty > 0.25 * slope.value.abs(), "{slope:?}");
    }
}
