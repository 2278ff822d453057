#![doc = include_str!("../README.md")]

// Lets expansions say `::gradpact` inside this crate too.
extern crate self as gradpact;

#[cfg(feature = "audit")]
pub mod audit;
pub mod autograd;
pub mod contract;
#[cfg(feature = "cpu")]
pub mod cpu;
pub mod dtype;
pub mod engine;
pub mod error;
pub mod function;
mod list;
#[cfg_attr(
    not(feature = "audit"),
    allow(
        dead_code,
        unreachable_pub,
        reason = "without the audit nobody observes, and the optimizer leaves it out"
    )
)]
mod observe;
pub mod ops;
#[cfg(feature = "cpu")]
pub mod optim;
pub mod prelude;
pub mod shape;
#[cfg(feature = "cpu")]
pub mod testing;
pub mod typed;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use autograd::grad_mode::{enable_grad, no_grad};
pub use autograd::{
    BackwardOptions, DynTensor, Gradients, Outputs, autocast, autocast_dtype, backward, grad,
};
pub use contract::{GradDType, Policy, Source};
#[cfg(feature = "cpu")]
pub use cpu::Generator;
pub use dtype::{DType, Element, bf16, f8e4m3, f8e5m2, f16};
pub use engine::{Cpu, Engine};
pub use error::{Error, Result};
pub use function::{Context, Function, Graph, Inputs, apply, apply_optional, host};
pub use gradpact_macros::autograd_function;
pub use list::List;
pub use ops::Ops;
pub use shape::Shape;
pub use typed::{
    AnyGrad, Apply, CastOver, Contract, FitsIn, Float, ForwardOnly, GradType, Join, NoGrad, Op, Over, Tensor,
    Untracked, Value,
};
