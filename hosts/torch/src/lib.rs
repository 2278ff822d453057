#![doc = include_str!("../README.md")]

mod array;
mod differentiate;
mod dtype;
mod error;
mod ffi;
mod graph;
mod in_turn;
mod node;
mod ops;
pub mod prelude;
mod tensor;

pub use array::{Array, Torch};
pub use differentiate::{backward, grad, grad_dtype, grad_fn_name, libtorch_version, set_grad_dtype};
pub use dtype::kind;
pub use error::TorchError;
#[cfg(feature = "baseline")]
#[doc(hidden)]
pub use ffi::cpp_neg_chain;
pub use tensor::FromTch;
