//! What a file that defines or uses Functions needs: `use gradpact::prelude::*;`.

pub use crate::{
    AnyGrad, Apply, BackwardOptions, CastOver, Context, DType, DynTensor, Element, Error, Float, ForwardOnly,
    Function, GradDType, Gradients, Inputs, Join, NoGrad, Op, Outputs, Over, Policy, Result, Shape, Tensor,
    Untracked, Value, apply, autocast, autograd_function, bf16, enable_grad, f8e4m3, f8e5m2, f16, no_grad,
};

#[cfg(feature = "cpu")]
pub use crate::Generator;
