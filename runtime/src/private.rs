//! What expansions of `#[autograd_function]` name. Not for users: it may change in any version.

pub use core::option::Option;
pub use core::primitive::{bool, f32, f64, i8, i16, i32, i64, str, u8};

pub use crate::autograd::{Gradients, Outputs};
pub use crate::contract::{GradDType, Policy};
pub use crate::dtype::{DType, Element, bf16, f8e4m3, f8e5m2, f16};
pub use crate::engine::{Cpu, Engine};
pub use crate::error::Result;
pub use crate::function::{Context, Function, GivenInputs, Graph, Inputs, apply_optional};
pub use crate::typed::{
    AnyGrad, Contract, ForwardOnly, NoBackward, NoGrad, Op, Tensor, Tensors, Written, backward, forward,
    no_backward,
};
