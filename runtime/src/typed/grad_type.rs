//! What can stand for a gradient dtype in a tensor's type.

use super::join::{Join, Over};
use crate::contract::{GradContract, GradDType};
use crate::dtype::{Element, bf16, f8e4m3, f8e5m2, f16};

/// The gradient of this tensor is taken as it comes: `grad = any`.
#[derive(Clone, Copy, Debug)]
pub enum AnyGrad {}

/// This tensor has no gradient: `grad = none`.
#[derive(Clone, Copy, Debug)]
pub enum NoGrad {}

/// The type does not say: inside `forward` and `backward` only storage dtypes matter. There one writes `Value<f32>`, which
/// is `Tensor<f32, Untracked>`, where a signature outside has `Tensor<f32>`.
#[derive(Clone, Copy, Debug)]
pub enum Untracked {}

mod sealed {
    pub trait Sealed {}
}

/// A second type parameter of [`Tensor`](super::Tensor): in which dtype its gradient arrives.
///
/// A floating dtype; [`AnyGrad`]; [`NoGrad`], or for an integer tensor its own dtype, if it has none; [`Untracked`] if
/// the type does not say. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a gradient dtype",
    label = "not a gradient dtype",
    note = "a gradient arrives in f16, bf16, f32, f64, f8e4m3 or f8e5m2, or is `AnyGrad` or `NoGrad`"
)]
pub trait GradType: sealed::Sealed + 'static {
    /// The gradient dtype that the type says, if it says one.
    const GRAD_DTYPE: Option<GradDType>;

    /// Whether the type leaves it open.
    const IS_UNTRACKED: bool = false;

    /// The word for it in errors.
    const NAME: &'static str;

    /// Whether a tensor that is tracked with `contract` (or untracked, with `None`) may have this type.
    ///
    /// A tensor without a graph has no gradient, and so may have every type.
    fn admits(contract: Option<GradContract>) -> bool {
        contract.is_none_or(|contract| Some(contract.grad_dtype) == Self::GRAD_DTYPE)
    }
}

/// A floating-point dtype: one that a gradient can have. The bound for Functions that are generic over dtype. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point dtype",
    label = "a gradient cannot have this dtype",
    note = "a gradient's dtype is one of f16, bf16, f32, f64, f8e4m3, f8e5m2"
)]
pub trait Float: Element + GradType + Join<Self, Output = Self> + Over<Self, Output = Self> {}

impl sealed::Sealed for AnyGrad {}
impl GradType for AnyGrad {
    const GRAD_DTYPE: Option<GradDType> = Some(GradDType::Any);
    const NAME: &'static str = "any";
}

impl sealed::Sealed for NoGrad {}
impl GradType for NoGrad {
    const GRAD_DTYPE: Option<GradDType> = None;
    const NAME: &'static str = "none";
}

impl sealed::Sealed for Untracked {}
impl GradType for Untracked {
    const GRAD_DTYPE: Option<GradDType> = None;
    const IS_UNTRACKED: bool = true;
    const NAME: &'static str = "untracked";

    fn admits(_: Option<GradContract>) -> bool {
        true
    }
}

macro_rules! grad_types {
    (floats: $($float:ty)*; others: $($other:ty)*) => {
        $(
            impl sealed::Sealed for $float {}
            impl GradType for $float {
                const GRAD_DTYPE: Option<GradDType> = Some(GradDType::Exactly(<$float as Element>::DTYPE));
                const NAME: &'static str = <$float as Element>::DTYPE.as_str();
            }
            impl Float for $float {}
        )*
        $(
            impl sealed::Sealed for $other {}
            impl GradType for $other {
                const GRAD_DTYPE: Option<GradDType> = None;
                const NAME: &'static str = "none";
            }
        )*
    };
}
grad_types! { floats: f8e4m3 f8e5m2 f16 bf16 f32 f64; others: bool u8 i8 i16 i32 i64 }
