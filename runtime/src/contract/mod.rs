//! The contract: in which dtype the gradient of each output must arrive, and what happens when another one comes.
//!
//! The heart of the crate. It decides; it holds no tensors and converts nothing.

mod admit;
mod policy;

pub use admit::{Admission, Refusal, admit};
pub use policy::Policy;

use core::fmt;

use crate::dtype::DType;
use crate::error::{Error, Result};

/// The dtype that the gradient of a tensor must have when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GradDType {
    /// Converted to this dtype if it comes in another.
    Exactly(DType),
    /// Taken as it comes (`None` in PyTorch).
    Any,
}

impl GradDType {
    /// The wider of both; any is wider than every dtype.
    pub fn widest(self, other: Self) -> Self {
        match (self, other) {
            (Self::Exactly(a), Self::Exactly(b)) => Self::Exactly(a.promote(b)),
            _ => Self::Any,
        }
    }

    /// Checks that a gradient can have this dtype.
    ///
    /// # Errors
    /// [`Error::DType`] if it is not floating-point.
    pub(crate) fn require_float(self, operation: &'static str) -> Result<()> {
        match self.dtype().filter(|dtype| !dtype.is_float()) {
            None => Ok(()),
            Some(got) => Err(Error::DType {
                operation,
                expected: "a floating-point dtype for a gradient".to_owned(),
                got,
            }),
        }
    }

    /// The dtype, unless any is taken.
    pub const fn dtype(self) -> Option<DType> {
        match self {
            Self::Exactly(dtype) => Some(dtype),
            Self::Any => None,
        }
    }
}

impl fmt::Display for GradDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(dtype) => dtype.fmt(f),
            Self::Any => f.pad("any"),
        }
    }
}

/// Where a tensor's gradient dtype comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Someone said so: `set_output_grad_dtype`, or a leaf made with a gradient dtype.
    Declared,
    /// Nobody did: it is the tensor's own storage dtype.
    Default,
    /// A built-in operation passed on the widest of its own storage dtype and its inputs' gradient dtypes.
    Carried,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Declared => "declared",
            Self::Default => "default",
            Self::Carried => "carried",
        })
    }
}

/// What holds for the gradient of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GradContract {
    /// The dtype it must have.
    pub grad_dtype: GradDType,
    /// Who said so.
    pub source: Source,
    /// What a gradient of another dtype gets.
    pub policy: Policy,
}

impl GradContract {
    /// The contract of a tensor for which nothing was declared: its own dtype, under the default policy.
    pub const fn default_of(dtype: DType) -> Self {
        Self { grad_dtype: GradDType::Exactly(dtype), source: Source::Default, policy: Policy::Cast }
    }

    /// A declared contract, under the default policy.
    pub const fn declared(grad_dtype: GradDType) -> Self {
        Self { grad_dtype, source: Source::Declared, policy: Policy::Cast }
    }

    /// The contract of a built-in operation's output: the widest of its storage dtype and its inputs' gradient dtypes.
    ///
    /// `Any` is wider than every dtype: what an input takes as it comes, an operation on it does not round.
    /// `None` if neither the storage nor an input is differentiable.
    pub fn carried(storage: DType, inputs: impl Iterator<Item = GradDType> + Clone) -> Option<Self> {
        let contract = |grad_dtype| Self { grad_dtype, source: Source::Carried, policy: Policy::Cast };
        if inputs.clone().all(|input| input == GradDType::Exactly(storage)) && storage.is_float() {
            return Some(contract(GradDType::Exactly(storage)));
        }
        if inputs.clone().any(|input| input == GradDType::Any) {
            return Some(contract(GradDType::Any));
        }
        let own = storage.is_float().then_some(storage);
        let dtypes: smallvec::SmallVec<[DType; 4]> =
            own.into_iter().chain(inputs.filter_map(GradDType::dtype)).collect();
        DType::widest(dtypes).map(|dtype| contract(GradDType::Exactly(dtype)))
    }

    /// One byte pair that [`GradContract::from_code`] turns back, so that a leaf can change its contract atomically.
    pub(crate) fn code(self) -> u16 {
        let dtype = self.grad_dtype.dtype().map_or(0, |dtype| dtype as u16);
        dtype | (self.source as u16) << 8 | (self.policy as u16) << 12
    }

    /// The contract of a code.
    #[inline]
    pub(crate) fn from_code(code: u16) -> Self {
        let source = match code >> 8 & 0xf {
            0 => Source::Declared,
            1 => Source::Default,
            _ => Source::Carried,
        };
        Self {
            grad_dtype: DType::from_code(code as u8).map_or(GradDType::Any, GradDType::Exactly),
            source,
            policy: if code >> 12 == 0 { Policy::Cast } else { Policy::Strict },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contract_survives_its_code() {
        let dtypes = DType::FLOATS.into_iter().map(GradDType::Exactly).chain([GradDType::Any]);
        for grad_dtype in dtypes {
            for source in [Source::Declared, Source::Default, Source::Carried] {
                for policy in [Policy::Cast, Policy::Strict] {
                    let contract = GradContract { grad_dtype, source, policy };
                    assert_eq!(GradContract::from_code(contract.code()), contract);
                }
            }
        }
    }

    #[test]
    fn an_operation_carries_the_widest_gradient_dtype_of_its_inputs() {
        let carried = |storage, inputs: &[GradDType]| {
            GradContract::carried(storage, inputs.iter().copied()).map(|contract| contract.grad_dtype)
        };
        use DType::{BF16, F16, F32, I8, I64};
        use GradDType::{Any, Exactly};
        assert_eq!(carried(F16, &[Exactly(F16)]), Some(Exactly(F16)));
        assert_eq!(carried(F16, &[Exactly(F16), Exactly(F32)]), Some(Exactly(F32)));
        assert_eq!(carried(F16, &[Exactly(BF16)]), Some(Exactly(F32)), "f16 and bf16 meet in f32");
        assert_eq!(carried(F32, &[Exactly(BF16)]), Some(Exactly(F32)), "never narrower than the storage");
        assert_eq!(carried(F16, &[Exactly(F32), Any]), Some(Any));
        assert_eq!(carried(I8, &[Exactly(F32)]), Some(Exactly(F32)));
        assert_eq!(carried(I64, &[]), None);
    }
}
