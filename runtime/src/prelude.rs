//! What a file that defines or uses Functions needs: `use gradpact::prelude::*;`.

pub use crate::{
    AnyGrad, Apply, BackwardOptions, Context, DType, DynTensor, Element, Error, Float, Function, GradDType,
    Gradients, Inputs, NoGrad, Op, Outputs, Result, Shape, Tensor, Value, apply, autograd_function, bf16,
    enable_grad, f8e4m3, f8e5m2, f16, no_grad,
};
