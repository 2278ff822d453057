//! The embedded CPU engine: arrays of twelve dtypes, kernels, and operations with gradients.
//!
//! Operations are methods of [`DynTensor`](crate::DynTensor), where dtypes promote, and of [`Tensor`](crate::Tensor), where the
//! types tell them. All return a `Result`; each method's documentation states shapes, dtypes, errors, gradient and source.
//!
//! | family | methods |
//! | --- | --- |
//! | creation | `from_vec` `from_slice` `full` `zeros` `ones` `scalar` `arange` `linspace` `rand` `randn` (with a seeded [`Generator`]) |
//! | reading | `to_vec` `item` `to_f64_vec`, `Display` |
//! | arithmetic | `add` `sub` `mul` `div` `pow` `minimum` `maximum`, each with a number as `…_scalar` where that makes sense |
//! | element by element | `neg` `abs` `sign` `exp` `ln` `sqrt` `rsqrt` `recip` `sin` `cos` `erf` `tanh` `sigmoid` `relu` `silu` `gelu` `clamp` |
//! | comparison | `eq` `ne` `lt` `le` `gt` `ge`, `where_cond` |
//! | sums and extrema | `sum` `mean` `max` `min` (all, `…_axes`, `…_along`), `sum_in` `mean_in` (chosen dtype), `argmax` `argmin` |
//! | matrices | `matmul` `matmul_in` (batched, broadcasting), `transpose` |
//! | shape | `reshape` `permute` `broadcast_to` `sum_to_shape` `narrow` `pad` `squeeze` `unsqueeze` `flatten` `cat` `stack` |
//! | index | `gather` `scatter_add` `index_select` `index_add` `embedding` `one_hot` |
//! | networks | `softmax` `log_softmax` `cross_entropy` `mse` `layer_norm` |
//! | dtype | `cast`, `narrow_grad`, `widen_grad`, `with_grad_dtype` |
//!
//! Kernels compute in `f32` (`f64` for `f64`, `i64` for integers) and round once, on the way out; sums of 8- and 16-bit
//! floats are formed in `f32`. Results do not depend on the number of threads nor, but for matrix products, on the vector
//! instructions of the processor.
//!
//! Memory of freed arrays is kept for the next ones: up to 512 MiB, and what is not used for two seconds is given back.

mod array;
pub(crate) mod buffer;
mod display;
pub(crate) mod kernels;
mod layout;
pub mod ops;
mod recycle;
mod tensor;
pub(crate) mod views;

pub use array::Array;
pub use kernels::Generator;
