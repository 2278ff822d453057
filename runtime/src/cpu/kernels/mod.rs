//! Arithmetic on arrays: plain functions from arrays to arrays. No autograd here.
//!
//! Whatever is stored, kernels compute in one of three types: `f32` for floats up to 32 bits, `f64` for `f64`, `i64`
//! for integers and `bool`. Elements are converted in blocks that stay in the first-level cache and rounded once, on
//! the way out. Functions of large arrays of 8 or 16 bits are looked up instead (`table`). Results do not depend on the
//! number of threads (`parallel`) nor, but for matrix products, on the vector instructions of the processor (`simd`).

mod binary;
mod cast;
mod census;
mod compute;
mod convert;
mod create;
mod extremum;
mod formula;
mod fused;
mod index;
mod math;
mod matmul;
mod narrow;
mod parallel;
mod plan;
mod read;
mod real;
mod reduce;
mod rounded;
mod simd;
mod softmax;
mod table;
mod turn;
mod unary;

pub(crate) use binary::{
    add, add_scalar, choose, compare, div, div_scalar, maximum, minimum, mul, mul_scalar, pow, pow_scalar,
    sub,
};
pub(crate) use cast::{accumulate, cast, contiguous};
pub(crate) use census::cast_counting;
pub use create::Generator;
pub(crate) use create::{arange, linspace, rand, randn};
pub(crate) use extremum::{Extreme, arg_extreme, extreme, extreme_along};
pub(crate) use formula::{Formula, formula, total};
pub(crate) use index::{cat, gather_along, index_add, index_select, one_hot, pad, scatter_add};
pub(crate) use matmul::matmul;
pub(crate) use read::Reader;
pub(crate) use real::Real;
pub(crate) use reduce::{mean, sum, sum_rounding, sum_to_shape};
pub(crate) use rounded::{accumulate_rounded, sum_rounded};
pub(crate) use softmax::softmax;
pub(crate) use unary::{
    abs, clamp, cos, erf, exp, gelu, integer, ln, neg, recip, relu, rsqrt, sigmoid, sign, silu, sin, sqrt,
    tanh,
};
