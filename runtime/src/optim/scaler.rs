//! Loss scaling: keeps small gradients from vanishing where they travel in a narrow dtype.

use std::collections::BTreeMap;

use super::clip::nonfinite;
use super::optimizer::Optimizer;
use super::parameter::{Leaf, Parameter, id_of, leaves};
use super::rule::Rule;
use crate::autograd::DynTensor;
use crate::cpu::Array;
use crate::cpu::kernels::mul_scalar;
use crate::cpu::ops::Unary;
use crate::error::{Error, Result};
use crate::typed::{Float, Over, Tensor};

/// Multiplies the loss by a scale, divides the gradients by it again, and adjusts it: down when gradients were not finite,
/// in which case the step is skipped, and up after many steps in which they were.
///
/// Where every gradient dtype on the way is declared `f32` no scaling is needed. It helps where gradients travel in `f16` or
/// an 8-bit float. In a round of training one calls [`scale`](Self::scale) and backward, [`unscale`](Self::unscale) only if the
/// gradients are to be looked at or clipped, then [`step`](Self::step) for each optimizer, and [`update`](Self::update).
///
/// Source: [`torch.amp.GradScaler`](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling), whose defaults it has. PyTorch
/// refuses to unscale gradients in `f16`; here they are unscaled in `f32`, and by `step` without being rounded back.
///
/// # Examples
/// ```
/// use gradpact::optim::{GradScaler, Optimizer, ScaledStep, Sgd, clip_grad_norm};
/// use gradpact::prelude::*;
///
/// # fn main() -> Result<()> {
/// let mut w = Tensor::<f16>::ones([1])?.requiring_grad()?;
/// let mut optimizer = Optimizer::new(Sgd::new(0.5))?;
/// let mut scaler = GradScaler::new(1024.0)?;
///
/// let loss = w.cast::<f32>()?.mul_scalar(1.0)?.sum()?;
/// scaler.scale(&loss)?.backward()?; // a gradient of 1024
/// scaler.unscale(&mut [&mut w])?; // 1 again
/// clip_grad_norm(&mut [&mut w], 2.0)?;
/// assert_eq!(scaler.step(&mut optimizer, &mut [&mut w])?, ScaledStep::Done);
/// scaler.update()?;
/// assert_eq!(w.to_vec()?, [f16::from_f32(0.5)]);
///
/// scaler.scale(&w.mul_scalar(1e4)?.sum()?)?.backward()?; // more than f16 can hold
/// assert_eq!(scaler.step(&mut optimizer, &mut [&mut w])?, ScaledStep::Skipped { nonfinite: 1 });
/// scaler.update()?;
/// assert_eq!((w.to_vec()?, scaler.get_scale()), (vec![f16::from_f32(0.5)], 512.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct GradScaler {
    pub(super) scale: f64,
    pub(super) growth_factor: f64,
    pub(super) backoff_factor: f64,
    pub(super) growth_interval: u64,
    /// How many updates in a row found every gradient finite, since the scale last changed.
    pub(super) growth_tracker: u64,
    /// What was done in this round, by leaf.
    pub(super) round: BTreeMap<u64, Stage>,
    /// Whether a gradient of this round was not finite.
    pub(super) found_nonfinite: bool,
}

/// How far a leaf is in a round.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    /// Its gradient was unscaled, and had so many values that were not finite.
    Unscaled(u64),
    /// It was given to a step.
    Stepped,
}

/// What [`GradScaler::step`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaledStep {
    /// The optimizer made its step.
    Done,
    /// The optimizer was not asked: the parameters are as before, without their gradients.
    Skipped {
        /// How many values of the gradients were infinite or NaN.
        nonfinite: u64,
    },
}

/// A loss that a scaler can scale: a [`Tensor`] or a [`DynTensor`].
pub trait Loss {
    /// The scaled loss.
    type Scaled;

    /// The loss multiplied by a number.
    #[doc(hidden)]
    fn scaled(&self, scale: f64) -> Result<Self::Scaled>;
}

impl Loss for DynTensor {
    type Scaled = Self;

    fn scaled(&self, scale: f64) -> Result<Self> {
        self.mul_scalar(scale)
    }
}

impl<D: Float, G: Over<D>> Loss for Tensor<D, G> {
    type Scaled = Unary<D, G>;

    fn scaled(&self, scale: f64) -> Result<Unary<D, G>> {
        self.mul_scalar(scale)
    }
}

/// PyTorch's: starts at 65536, doubles after 2000 good steps, halves after a bad one.
impl Default for GradScaler {
    fn default() -> Self {
        Self {
            scale: 65536.0,
            growth_factor: 2.0,
            backoff_factor: 0.5,
            growth_interval: 2000,
            growth_tracker: 0,
            round: BTreeMap::new(),
            found_nonfinite: false,
        }
    }
}

impl GradScaler {
    /// A scaler that starts at this scale; everything else is as in [`default`](Self::default).
    ///
    /// # Errors
    /// [`Error::Argument`] if the scale is not finite and positive in `f32`. It may be less than 1.
    pub fn new(scale: f64) -> Result<Self> {
        Self { scale, ..Self::default() }.checked()
    }

    /// Sets what the scale is multiplied by when it grows.
    ///
    /// # Errors
    /// [`Error::Argument`] unless it is finite and more than 1.
    pub fn growth_factor(self, growth_factor: f64) -> Result<Self> {
        Self { growth_factor, ..self }.checked()
    }

    /// Sets what the scale is multiplied by when gradients were not finite.
    ///
    /// # Errors
    /// [`Error::Argument`] unless it is more than 0 and less than 1.
    pub fn backoff_factor(self, backoff_factor: f64) -> Result<Self> {
        Self { backoff_factor, ..self }.checked()
    }

    /// Sets after how many good steps in a row the scale grows. With `u64::MAX` it never does.
    ///
    /// # Errors
    /// [`Error::Argument`] if it is 0.
    pub fn growth_interval(self, growth_interval: u64) -> Result<Self> {
        Self { growth_interval, ..self }.checked()
    }

    /// The scaler, if its numbers make sense.
    pub(super) fn checked(self) -> Result<Self> {
        let growth = self.growth_factor;
        let backoff = self.backoff_factor;
        let problem = if !in_range(self.scale) {
            format!("expected a scale that is positive and finite in f32, got {}", self.scale)
        } else if !(growth.is_finite() && growth > 1.0) {
            format!("expected a finite growth_factor of more than 1, got {growth}")
        } else if !(backoff > 0.0 && backoff < 1.0) {
            format!("expected a backoff_factor between 0 and 1, got {backoff}")
        } else if self.growth_interval == 0 {
            "expected a growth_interval of at least 1, got 0".to_owned()
        } else {
            return Ok(self);
        };
        Err(Error::Argument { operation: "GradScaler", problem })
    }

    /// The scale that losses are multiplied by now.
    pub fn get_scale(&self) -> f64 {
        self.scale
    }

    /// The loss multiplied by the scale, in the loss's dtype: a loss in `f16` may overflow, so form it in `f32`.
    ///
    /// # Errors
    /// Those of `mul_scalar`.
    pub fn scale<L: Loss>(&self, loss: &L) -> Result<L::Scaled> {
        loss.scaled(self.scale)
    }

    /// Divides the gradients of these parameters by the scale, and says how many of their values are infinite or NaN.
    ///
    /// The quotient is computed in `f32` or wider and rounded once to the dtype that the gradient is kept in: what is kept in
    /// `f16` may become zero here. [`step`](Self::step) alone does without that rounding. An overflow in `f8e4m3`, which has
    /// no infinity, cannot be seen.
    ///
    /// # Errors
    /// [`Error::Parameter`], naming the position, for what is no leaf or given twice, and for one whose gradient was unscaled
    /// or used in a step since the last [`update`](Self::update). Then nothing is unscaled.
    pub fn unscale(&mut self, params: &mut [&mut dyn Parameter]) -> Result<u64> {
        let leaves = leaves("unscale", params)?;
        for (position, leaf) in leaves.iter().enumerate() {
            let got = match self.round.get(&leaf.id) {
                None => continue,
                Some(Stage::Unscaled(_)) => "one that was unscaled already",
                Some(Stage::Stepped) => "one that a step was made with",
            };
            return Err(once_a_round("unscale", position, got));
        }
        let unscaled = |leaf: &Leaf| {
            let Some(grad) = &leaf.grad else { return Ok((None, 0)) };
            let unscaled = self.quotient(leaf, grad)?.cast(grad.dtype())?;
            let count = nonfinite(&unscaled)?;
            Ok((Some(unscaled), count))
        };
        let unscaled = leaves.iter().map(unscaled).collect::<Result<Vec<_>>>()?;
        let total = unscaled.iter().map(|(_, count)| count).sum();
        for (leaf, (grad, count)) in leaves.iter().zip(unscaled) {
            if let Some(grad) = grad {
                leaf.set_grad(grad);
            }
            self.round.insert(leaf.id, Stage::Unscaled(count));
        }
        self.found_nonfinite |= total > 0;
        Ok(total)
    }

    /// Makes a step of `optimizer`, unless a gradient has a value that is infinite or NaN.
    ///
    /// Gradients that were not [unscaled](Self::unscale) are divided by the scale here, in `f32` or wider, and go into the step
    /// without being rounded to the dtype they were kept in. Whether the step is made or skipped, the parameters are without
    /// gradients afterwards.
    ///
    /// # Errors
    /// As [`Optimizer::step`]; [`Error::Argument`] if no parameter has a gradient; [`Error::Parameter`] for one that was given
    /// to a step since the last [`update`](Self::update). Then everything is as before.
    pub fn step<R: Rule>(
        &mut self,
        optimizer: &mut Optimizer<R>,
        params: &mut [&mut dyn Parameter],
    ) -> Result<ScaledStep> {
        let mut leaves = leaves("step", params)?;
        optimizer.check(&leaves)?;
        if leaves.iter().all(|leaf| leaf.grad.is_none()) {
            let problem = "expected gradients, got none: call backward on the scaled loss first".to_owned();
            return Err(Error::Argument { operation: "step", problem });
        }
        let mut count = 0;
        for (position, leaf) in leaves.iter_mut().enumerate() {
            count += self.unscale_for_step(position, leaf)?;
        }
        let outcome = if count == 0 {
            optimizer.step_leaves(params, &leaves)?;
            ScaledStep::Done
        } else {
            super::zero_grad(params);
            ScaledStep::Skipped { nonfinite: count }
        };
        self.round.extend(params.iter().filter_map(|param| Some((id_of(param.as_dyn())?, Stage::Stepped))));
        self.found_nonfinite |= count > 0;
        Ok(outcome)
    }

    /// Gives the leaf its unscaled gradient, and says how many of its values are not finite.
    fn unscale_for_step(&self, position: usize, leaf: &mut Leaf) -> Result<u64> {
        let stage = self.round.get(&leaf.id);
        if let Some(Stage::Stepped) = stage {
            return Err(once_a_round("step", position, "one that a step was made with"));
        }
        let Some(grad) = leaf.grad.take() else { return Ok(0) };
        let (grad, before) = match stage {
            Some(Stage::Unscaled(count)) => (grad, *count),
            _ => (self.quotient(leaf, &grad)?, 0),
        };
        let count = nonfinite(&grad)?.max(before);
        leaf.grad = Some(grad);
        Ok(count)
    }

    /// The gradient divided by the scale, in the dtype of the leaf's arithmetic.
    fn quotient(&self, leaf: &Leaf, grad: &Array) -> Result<Array> {
        mul_scalar(&grad.cast(leaf.wide())?, 1.0 / self.scale)
    }

    /// Ends a round: adjusts the scale to what was found in it. Called after the steps of the round: it forgets what was
    /// unscaled, so a gradient that was unscaled before and is given to a step after it is divided by the scale again.
    ///
    /// # Errors
    /// [`Error::Argument`] if nothing was unscaled or given to a step since the last update; and if the scale would become too
    /// small for `f32`, which means that gradients are not finite whatever the scale.
    pub fn update(&mut self) -> Result<()> {
        let bad = |problem: String| Err(Error::Argument { operation: "update", problem });
        if self.round.is_empty() {
            return bad("expected a round with a step, got none since the last update".to_owned());
        }
        if self.found_nonfinite {
            let scale = self.scale * self.backoff_factor;
            if !in_range(scale) {
                return bad(format!(
                    "expected finite gradients at some scale, got infinite or NaN ones even at {}",
                    self.scale
                ));
            }
            (self.scale, self.growth_tracker) = (scale, 0);
        } else {
            self.growth_tracker = self.growth_tracker.saturating_add(1);
            if self.growth_tracker >= self.growth_interval {
                let scale = self.scale * self.growth_factor;
                // At the largest scale it stays, as in PyTorch.
                self.scale = if in_range(scale) { scale } else { self.scale };
                self.growth_tracker = 0;
            }
        }
        self.round.clear();
        self.found_nonfinite = false;
        Ok(())
    }
}

/// Whether it is a finite, positive, normal number of `f32`, in which gradients are scaled.
fn in_range(scale: f64) -> bool {
    (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&scale)
}

#[cold]
fn once_a_round(operation: &'static str, position: usize, got: &str) -> Error {
    let expected = "each gradient once between updates".to_owned();
    Error::Parameter { operation, position, expected, got: got.to_owned() }
}
