//! The embedded CPU engine.

mod array;
mod buffer;
mod display;
pub(crate) mod kernels;
mod layout;
pub mod ops;
mod tensor;
pub(crate) mod views;

pub use array::Array;
pub use kernels::Generator;
