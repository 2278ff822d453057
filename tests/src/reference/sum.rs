//! Gradients that meet: summed, and whether the order of that can matter.

use gradpact::DType;

use super::Tensor;
use crate::format::{bits, last_bit, power, round};

/// The sum of at least one tensor, rounded to `dtype` at every step, and whether every order gives the same.
pub(super) fn total(tensors: &[&Tensor], dtype: DType) -> (Vec<f64>, bool) {
    let mut certain = true;
    let elements = 0..tensors[0].values.len();
    let sums = elements.map(|element| {
        let terms: Vec<f64> = tensors.iter().map(|tensor| tensor.values[element]).collect();
        certain &= order_cannot_matter(&terms, dtype);
        // From the first term, not from zero: a sum of negative zeros is one.
        terms.into_iter().reduce(|sum, term| round(dtype, sum + term)).unwrap_or(0.0)
    });
    (sums.collect(), certain)
}

/// Whether every partial sum in every order is exact in `dtype`: all terms are multiples of one power of two, and their
/// magnitudes together stay below what the dtype counts exactly in such multiples.
fn order_cannot_matter(terms: &[f64], dtype: DType) -> bool {
    let finite: Vec<f64> = terms.iter().copied().filter(|term| term.is_finite() && *term != 0.0).collect();
    let Some(unit) = finite.iter().map(|&term| last_bit(term)).min() else { return true };
    let (_, fraction) = bits(dtype).unwrap_or_default();
    let total: f64 = finite.iter().map(|term| term.abs()).sum();
    total < 1e38 && total * power(-unit.max(-1000)) < power(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_certain_only_if_no_order_rounds_it() {
        assert!(order_cannot_matter(&[1.0, -3.0, 0.25, 0.0], DType::F32));
        assert!(!order_cannot_matter(&[1.0, power(-30)], DType::F32));
        assert!(order_cannot_matter(&[1.0, power(-30)], DType::F64));
        assert!(order_cannot_matter(&[1.0, f64::INFINITY, f64::NEG_INFINITY], DType::F32));
    }
}
