//! The embedded CPU engine.

mod array;
pub(crate) mod kernels;

pub use array::Array;
