//! How much the values of a function scatter around a smooth curve: the noise of its own arithmetic, measured.
//!
//! Moré and Wild, "Estimating Computational Noise", 2011: differences of fourth order take a smooth function away and
//! leave noise of standard deviation σ as √70·σ. The median over several places is not misled by one kink.

use super::differences::Evaluation;

/// How many evaluations at equal distances are needed.
pub(super) const POINTS: usize = 9;

/// Three standard deviations of each number's noise, from evaluations at [`POINTS`] equal distances.
pub(super) fn scatter(evaluations: &[Evaluation]) -> Vec<f64> {
    let count = evaluations.first().map_or(0, |evaluation| evaluation.values.len());
    let of_one = |nth: usize| {
        let values: Vec<f64> = evaluations.iter().map(|evaluation| evaluation.values[nth]).collect();
        let mut fourth: Vec<f64> =
            values.windows(5).map(fourth_difference).filter(|d| d.is_finite()).collect();
        fourth.sort_by(f64::total_cmp);
        // Half of normally distributed values are within 0.6745 σ.
        fourth.get(fourth.len() / 2).map_or(0.0, |median| 3.0 * median / (0.6745 * 70.0_f64.sqrt()))
    };
    (0..count).map(of_one).collect()
}

fn fourth_difference(v: &[f64]) -> f64 {
    (v[0] - 4.0 * v[1] + 6.0 * v[2] - 4.0 * v[3] + v[4]).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluations(f: impl Fn(f64) -> f64) -> Vec<Evaluation> {
        (0..POINTS as i32)
            .map(|nth| Evaluation { offset: 0.0, values: vec![f(f64::from(nth))], noise: vec![0.0] })
            .collect()
    }

    #[test]
    fn a_cubic_has_no_noise_and_alternating_errors_are_seen() {
        assert_eq!(scatter(&evaluations(|x| x.powi(3) - 7.0 * x)), [0.0]);
        // The worst case: every fourth difference is 16 times the error.
        let alternating = scatter(&evaluations(|x| x + if x % 2.0 == 0.0 { 1e-3 } else { -1e-3 }))[0];
        assert!((3e-3..9e-3).contains(&alternating), "{alternating}");
        assert_eq!(scatter(&[]), Vec::<f64>::new());
    }
}
