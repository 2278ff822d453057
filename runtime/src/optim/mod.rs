//! Optimizers for parameters whose gradient dtype is not that of their storage, with what belongs to them: loss scaling,
//! clipping, and files.
//!
//! | what | |
//! | --- | --- |
//! | [`Optimizer`] | makes steps by a rule: [`Sgd`], [`Adam`] or [`AdamW`], the formulas of `torch.optim` |
//! | [`Parameter`] | what a step updates: a variable with a [`Tensor`](crate::Tensor) or [`DynTensor`](crate::DynTensor) |
//! | [`GradScaler`] | loss scaling, for gradients in `f16` |
//! | [`clip_grad_norm`] | clipping by the norm of all gradients |
//! | `safetensors` | parameters, and the state of optimizers and scalers, as files; behind the feature `safetensors` |
//!
//! A step computes in `f32` (in `f64` where `f64` takes part) and rounds once to the stored dtype. For weights in `f16`, `bf16`
//! or 8 bits [`master_weights`](Optimizer::master_weights) keeps what that rounding would lose.
//!
//! # Examples
//!
//! ```
//! use gradpact::optim::{Adam, Optimizer};
//! use gradpact::prelude::*;
//!
//! # fn main() -> Result<()> {
//! // Stored in f16, gradient in f32; the line y = 2x + 1 is to be learned.
//! let mut w = Tensor::<f16, f32>::zeros([1])?.requiring_grad()?;
//! let mut b = Tensor::<f32>::zeros([1])?.requiring_grad()?;
//! let x = Tensor::<f32>::from_vec(vec![-1.0, 0.0, 1.0, 2.0], [4])?;
//! let y = Tensor::<f32>::from_vec(vec![-1.0, 1.0, 3.0, 5.0], [4])?;
//!
//! let mut optimizer = Optimizer::new(Adam::new(0.05))?.master_weights(true);
//! for step in 0..300 {
//!     let loss = x.mul(&w.cast::<f32>()?)?.add(&b)?.mse(&y)?;
//!     loss.backward()?;
//!     optimizer.set_lr(0.05 * f64::from(300 - step) / 300.0)?;
//!     optimizer.step(&mut [&mut w, &mut b])?;
//! }
//! let (w, b): (f16, f32) = (w.item()?, b.item()?);
//! assert!((w.to_f32() - 2.0).abs() < 0.01 && (b - 1.0).abs() < 0.01, "{w} {b}");
//! # Ok(())
//! # }
//! ```

mod adam;
mod clip;
mod optimizer;
mod parameter;
mod rule;
#[cfg(feature = "safetensors")]
pub mod safetensors;
mod scaler;
mod sgd;

pub use adam::{Adam, AdamW};
pub use clip::{clip_grad_norm, clip_grad_norm_if_finite, grad_norm};
pub use optimizer::Optimizer;
pub use parameter::{Parameter, zero_grad};
pub use rule::Rule;
pub use scaler::{GradScaler, Loss, ScaledStep};
pub use sgd::Sgd;
