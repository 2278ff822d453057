//! The one rule by which a gradient is admitted to an edge.

use super::{GradContract, GradDType, Policy};
use crate::dtype::DType;
use crate::shape::Shape;

/// How a gradient is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Without a conversion, and without a copy.
    AsIs,
    /// After conversion to this dtype.
    Convert(DType),
}

/// Why a gradient is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not floating-point.
    NotFloat,
    /// Its shape is not the tensor's; `dtype` tells whether its dtype is not the expected one either.
    Shape {
        /// The expected dtype, where the gradient has another.
        dtype: Option<DType>,
    },
    /// Its dtype is not this one, and the policy forbids conversion.
    DType(DType),
}

/// Decides whether a gradient of `shape` and `dtype` may travel along an edge to a tensor of shape `expected`.
///
/// The order is fixed: shape, then floating, then dtype. (That a Function returned as many gradients as it has
/// inputs, and which of them are undefined, is settled before: neither concerns one gradient alone.)
///
/// # Errors
/// The [`Refusal`], from which the engine makes an error that names the Functions.
pub fn admit(
    expected: &Shape,
    contract: GradContract,
    shape: &Shape,
    dtype: DType,
) -> Result<Admission, Refusal> {
    let wanted = match contract.grad_dtype {
        GradDType::Exactly(wanted) if wanted != dtype => Some(wanted),
        _ => None,
    };
    if shape != expected {
        return Err(Refusal::Shape { dtype: wanted });
    }
    if !dtype.is_float() {
        return Err(Refusal::NotFloat);
    }
    match (wanted, contract.policy) {
        (None, _) => Ok(Admission::AsIs),
        (Some(wanted), Policy::Cast) => Ok(Admission::Convert(wanted)),
        (Some(wanted), Policy::Strict) => Err(Refusal::DType(wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: GradContract = GradContract::declared(GradDType::Exactly(DType::F32));

    fn decide(contract: GradContract, shape: &[usize], dtype: DType) -> Result<Admission, Refusal> {
        admit(&Shape::from([2]), contract, &Shape::from(shape), dtype)
    }

    #[test]
    fn the_declared_dtype_is_admitted_as_it_is_and_any_other_float_is_converted() {
        assert_eq!(decide(F32, &[2], DType::F32), Ok(Admission::AsIs));
        for dtype in DType::FLOATS.into_iter().filter(|&dtype| dtype != DType::F32) {
            assert_eq!(decide(F32, &[2], dtype), Ok(Admission::Convert(DType::F32)));
        }
    }

    #[test]
    fn any_takes_every_float_as_it_comes_and_nothing_else() {
        let any = GradContract::declared(GradDType::Any);
        for dtype in DType::ALL {
            let expected = if dtype.is_float() { Ok(Admission::AsIs) } else { Err(Refusal::NotFloat) };
            assert_eq!(decide(any, &[2], dtype), expected);
        }
    }

    #[test]
    fn the_strict_policy_refuses_what_would_be_converted() {
        let strict = GradContract { policy: Policy::Strict, ..F32 };
        assert_eq!(decide(strict, &[2], DType::F32), Ok(Admission::AsIs));
        assert_eq!(decide(strict, &[2], DType::F16), Err(Refusal::DType(DType::F32)));
    }

    #[test]
    fn a_wrong_shape_is_told_before_a_wrong_dtype_and_with_it() {
        assert_eq!(decide(F32, &[3], DType::F32), Err(Refusal::Shape { dtype: None }));
        assert_eq!(decide(F32, &[2, 1], DType::F16), Err(Refusal::Shape { dtype: Some(DType::F32) }));
        assert_eq!(decide(F32, &[], DType::I64), Err(Refusal::Shape { dtype: Some(DType::F32) }));
        assert_eq!(decide(F32, &[2], DType::I64), Err(Refusal::NotFloat));
    }
}
