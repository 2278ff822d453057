//! Stochastic gradient descent, with momentum.

use super::rule::{Formulas, Rule, Setting, Update, decayed, require, require_not_negative};
use crate::cpu::Array;
use crate::cpu::kernels::{Formula, Real, formula};
use crate::error::{Error, Result};

/// Stochastic gradient descent.
///
/// For parameter `p` and gradient `g`, with `λ` the weight decay, `μ` the momentum and `τ` the dampening:
///
/// ```text
/// g ← g + λ·p
/// b ← g in the first step, later μ·b + (1 − τ)·g        (with momentum)
/// d = g without momentum, b with it, g + μ·b with Nesterov's
/// p ← p − lr·d
/// ```
///
/// Source: [`torch.optim.SGD`](https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html), whose defaults it has,
/// without `maximize`.
///
/// # Examples
/// ```
/// use gradpact::optim::{Optimizer, Sgd};
/// use gradpact::prelude::*;
///
/// # fn main() -> Result<()> {
/// let mut w = Tensor::<f16, f32>::from_vec(vec![f16::from_f32(3.0)], [1])?.requiring_grad()?;
/// let mut optimizer = Optimizer::new(Sgd::new(0.5))?;
/// w.mul(&w)?.sum()?.backward()?; // 2w = 6
/// optimizer.step(&mut [&mut w])?;
/// assert_eq!(w.to_vec()?, [f16::from_f32(0.0)]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Sgd {
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
}

impl Sgd {
    /// Plain gradient descent with this learning rate: finite and not negative.
    pub fn new(lr: f64) -> Self {
        Self { lr, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false }
    }

    /// Sets the momentum `μ`: finite and not negative.
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// Sets the dampening `τ` of momentum: finite.
    pub fn dampening(mut self, dampening: f64) -> Self {
        self.dampening = dampening;
        self
    }

    /// Sets the weight decay `λ`: finite and not negative.
    pub fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Turns Nesterov momentum on or off. It needs a momentum, and no dampening.
    pub fn nesterov(mut self, nesterov: bool) -> Self {
        self.nesterov = nesterov;
        self
    }

    fn has_momentum(&self) -> bool {
        self.momentum != 0.0
    }
}

/// `g + λ·p`, of `p` and `g`.
struct FirstBuffer<'a>(&'a Sgd);

impl Formula for FirstBuffer<'_> {
    fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync {
        let decayed = decayed::<R>(self.0.weight_decay);
        move |p, g, _| decayed(p, g)
    }
}

/// `μ·b + (1 − τ)·(g + λ·p)`, of `p`, `g` and `b`.
struct NextBuffer<'a>(&'a Sgd);

impl Formula for NextBuffer<'_> {
    fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync {
        let decayed = decayed::<R>(self.0.weight_decay);
        let (momentum, share) = (R::from_f64(self.0.momentum), R::from_f64(1.0 - self.0.dampening));
        move |p, g, b| momentum * b + share * decayed(p, g)
    }
}

/// `p − lr·d`, of `p`, `g` and the new `b`.
struct Descent<'a>(&'a Sgd);

impl Formula for Descent<'_> {
    fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync {
        let decayed = decayed::<R>(self.0.weight_decay);
        let (lr, momentum) = (R::from_f64(self.0.lr), R::from_f64(self.0.momentum));
        let (plain, nesterov) = (!self.0.has_momentum(), self.0.nesterov);
        move |p, g, b| {
            let direction = match (plain, nesterov) {
                (true, _) => decayed(p, g),
                (false, true) => decayed(p, g) + momentum * b,
                (false, false) => b,
            };
            p - lr * direction
        }
    }
}

impl Rule for Sgd {
    fn lr(&self) -> f64 {
        self.lr
    }
}

impl Formulas for Sgd {
    const NAME: &'static str = "Sgd";

    fn check(&self) -> Result<()> {
        require_not_negative(Self::NAME, "lr", self.lr)?;
        require_not_negative(Self::NAME, "momentum", self.momentum)?;
        require_not_negative(Self::NAME, "weight_decay", self.weight_decay)?;
        require(Self::NAME, "dampening", self.dampening, "finite", true)?;
        if self.nesterov && (!self.has_momentum() || self.dampening != 0.0) {
            let (momentum, dampening) = (self.momentum, self.dampening);
            let problem = format!(
                "nesterov needs a momentum and no dampening, got momentum {momentum} and dampening {dampening}"
            );
            return Err(Error::Argument { operation: Self::NAME, problem });
        }
        Ok(())
    }

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("lr", Setting::Number(&mut self.lr)),
            ("momentum", Setting::Number(&mut self.momentum)),
            ("dampening", Setting::Number(&mut self.dampening)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
            ("nesterov", Setting::Switch(&mut self.nesterov)),
        ]
    }

    fn moment_names(&self) -> &'static [&'static str] {
        if self.has_momentum() { &["momentum_buffer"] } else { &[] }
    }

    fn update(&self, update: &Update<'_>) -> Result<(Array, Vec<Array>)> {
        let Update { wide, dtype, value, grad, .. } = *update;
        if !self.has_momentum() {
            return Ok((formula(wide, [value, grad, grad], dtype, &Descent(self))?, Vec::new()));
        }
        let buffer = match update.moments.first() {
            None => formula(wide, [value, grad, grad], wide, &FirstBuffer(self))?,
            Some(buffer) => formula(wide, [value, grad, buffer], wide, &NextBuffer(self))?,
        };
        let value = formula(wide, [value, grad, &buffer], dtype, &Descent(self))?;
        Ok((value, vec![buffer]))
    }
}
