//! Gradients that meet: admitted one by one, summed, rounded once.

use gradpact::{DType, GradDType};

use crate::format::{bits, last_bit, narrowest_float_for, power, round, wide};

/// A gradient on its way.
#[derive(Clone, Debug)]
pub struct Grad {
    /// Its dtype.
    pub dtype: DType,
    /// Its values.
    pub values: Vec<f64>,
    /// Whether the contract settles its values: not if somewhere before it a sum depends on the order of its terms.
    pub certain: bool,
}

impl Grad {
    /// As it arrives where `grad_dtype` holds.
    #[must_use]
    pub fn admitted(self, grad_dtype: GradDType) -> Self {
        match grad_dtype {
            GradDType::Exactly(dtype) if dtype != self.dtype => {
                let values = self.values.iter().map(|&value| round(dtype, value)).collect();
                Self { dtype, values, ..self }
            }
            _ => self,
        }
    }
}

/// The sum of admitted gradients, in the gradient dtype or, where any is taken, in the widest that arrived.
pub fn combine(mut grads: Vec<Grad>, grad_dtype: GradDType) -> Option<Grad> {
    if grads.len() < 2 {
        return grads.pop();
    }
    let arrived: Vec<DType> = grads.iter().map(|grad| grad.dtype).collect();
    let dtype = grad_dtype.dtype().or_else(|| narrowest_float_for(&arrived))?;
    let mut certain = grads.iter().all(|grad| grad.certain);
    let mut values = Vec::new();
    for position in 0..grads[0].values.len() {
        let terms: Vec<f64> = grads.iter().map(|grad| grad.values[position]).collect();
        certain &= order_cannot_matter(&terms, wide(dtype));
        // From the first term, not from zero: a sum of negative zeros is one.
        let sum = terms.into_iter().reduce(|sum, term| round(wide(dtype), sum + term))?;
        values.push(round(dtype, sum));
    }
    Some(Grad { dtype, values, certain })
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
