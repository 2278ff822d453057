//! The embedded CPU engine.

mod array;
pub(crate) mod kernels;
pub mod ops;
mod tensor;

pub use array::Array;
