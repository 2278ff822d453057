//! Arithmetic on arrays: plain functions from arrays to arrays. No autograd here.
//!
//! Whatever is stored, kernels compute in one of three types: `f32` for floats up to 32 bits, `f64` for `f64`, `i64`
//! for integers and `bool`. Elements are converted in blocks that stay in the first-level cache and rounded once, on
//! the way out. Results do not depend on the number of threads.

mod cast;
mod compute;
mod convert;
mod extremum;
mod index;
mod parallel;
mod read;
mod reduce;

pub(crate) use cast::{accumulate, cast, contiguous};
pub(crate) use extremum::{Extreme, arg_extreme, extreme, extreme_along};
pub(crate) use index::{cat, gather_along, index_add, index_select, one_hot, scatter_add, take};
pub(crate) use read::Reader;
pub(crate) use reduce::{mean, prod, sum, sum_to_shape};
