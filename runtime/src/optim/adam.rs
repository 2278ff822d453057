//! Adam and AdamW: steps scaled by running means of the gradient and of its square.

use super::rule::{Formulas, Rule, Setting, Update, decayed, require, require_not_negative};
use crate::cpu::Array;
use crate::cpu::kernels::{Formula, Real, formula};
use crate::error::Result;

/// The numbers that both have.
#[derive(Clone, Debug, PartialEq)]
struct Numbers {
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
}

/// `m + (1 − β₁)·(g − m)`, of `p`, `g` and `m`, where the decay is added to `g`.
struct Mean {
    decay: f64,
    beta1: f64,
}

impl Formula for Mean {
    fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync {
        let (decayed, share) = (decayed::<R>(self.decay), R::from_f64(1.0 - self.beta1));
        move |p, g, m| m + share * (decayed(p, g) - m)
    }
}

/// `β₂·v + (1 − β₂)·g²`, of `p`, `g` and `v`, where the decay is added to `g`.
struct MeanSquare {
    decay: f64,
    beta2: f64,
}

impl Formula for MeanSquare {
    fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync {
        let (decayed, beta2) = (decayed::<R>(self.decay), R::from_f64(self.beta2));
        let share = R::from_f64(1.0 - self.beta2);
        move |p, g, v| {
            let g = decayed(p, g);
            beta2 * v + share * (g * g)
        }
    }
}

/// `κ·p − lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)`, of `p` and the new `m` and `v`.
struct Descent {
    keep: f64,
    size: f64,
    root_of_correction: f64,
    eps: f64,
}

impl Formula for Descent {
    fn of<R: Real>(&self) -> impl Fn(R, R, R) -> R + Sync {
        let [keep, size, root_of_correction, eps] =
            [self.keep, self.size, self.root_of_correction, self.eps].map(R::from_f64);
        move |p, m, v| keep * p - size * (m / (v.sqrt() / root_of_correction + eps))
    }
}

impl Numbers {
    fn new(lr: f64, weight_decay: f64) -> Self {
        Self { lr, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay }
    }

    fn check(&self, rule: &'static str) -> Result<()> {
        require_not_negative(rule, "lr", self.lr)?;
        for (name, beta) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            require(rule, name, beta, "at least 0 and less than 1", (0.0..1.0).contains(&beta))?;
        }
        require_not_negative(rule, "eps", self.eps)?;
        require_not_negative(rule, "weight_decay", self.weight_decay)
    }

    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        vec![
            ("lr", Setting::Number(&mut self.lr)),
            ("beta1", Setting::Number(&mut self.beta1)),
            ("beta2", Setting::Number(&mut self.beta2)),
            ("eps", Setting::Number(&mut self.eps)),
            ("weight_decay", Setting::Number(&mut self.weight_decay)),
        ]
    }

    /// A step in which the weight decay `decay` is part of the gradient, and the weights are multiplied by `keep`.
    fn update(&self, update: &Update<'_>, decay: f64, keep: f64) -> Result<(Array, Vec<Array>)> {
        let Update { wide, dtype, value, grad, step, .. } = *update;
        let zeros = Array::zeros(value.shape(), wide)?;
        let moment = |nth: usize| update.moments.get(nth).unwrap_or(&zeros);
        let mean = Mean { decay, beta1: self.beta1 };
        let mean = formula(wide, [value, grad, moment(0)], wide, &mean)?;
        let square = MeanSquare { decay, beta2: self.beta2 };
        let square = formula(wide, [value, grad, moment(1)], wide, &square)?;
        let descent = Descent {
            keep,
            size: self.lr / (1.0 - self.beta1.powf(step as f64)),
            root_of_correction: (1.0 - self.beta2.powf(step as f64)).sqrt(),
            eps: self.eps,
        };
        let value = formula(wide, [value, &mean, &square], dtype, &descent)?;
        Ok((value, vec![mean, square]))
    }
}

const MOMENTS: [&str; 2] = ["exp_avg", "exp_avg_sq"];

/// What the two types have in common, word for word.
macro_rules! adam {
    ($(#[$doc:meta])* $name:ident, decay $decay:literal, |$numbers:ident| ($decayed:expr, $keep:expr)) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[must_use]
        pub struct $name(Numbers);

        impl $name {
            /// This learning rate, finite and not negative, and PyTorch's other defaults.
            pub fn new(lr: f64) -> Self {
                Self(Numbers::new(lr, $decay))
            }

            /// Sets `β₁` and `β₂`, 0.9 and 0.999 by default: at least 0 and less than 1.
            pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
                (self.0.beta1, self.0.beta2) = (beta1, beta2);
                self
            }

            /// Sets `ε`, 1e-8 by default: finite and not negative.
            pub fn eps(mut self, eps: f64) -> Self {
                self.0.eps = eps;
                self
            }

            /// Sets the weight decay `λ`: finite and not negative.
            pub fn weight_decay(mut self, weight_decay: f64) -> Self {
                self.0.weight_decay = weight_decay;
                self
            }
        }

        impl Rule for $name {
            fn lr(&self) -> f64 {
                self.0.lr
            }
        }

        impl Formulas for $name {
            const NAME: &'static str = stringify!($name);

            fn check(&self) -> Result<()> {
                self.0.check(Self::NAME)
            }

            fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
                self.0.settings()
            }

            fn moment_names(&self) -> &'static [&'static str] {
                &MOMENTS
            }

            fn update(&self, update: &Update<'_>) -> Result<(Array, Vec<Array>)> {
                let $numbers = &self.0;
                $numbers.update(update, $decayed, $keep)
            }
        }
    };
}

adam! {
    /// Adam, with weight decay as a part of the gradient.
    ///
    /// For parameter `p`, gradient `g` and step `t`, with `λ` the weight decay:
    ///
    /// ```text
    /// g ← g + λ·p
    /// m ← m + (1 − β₁)·(g − m)                 from 0
    /// v ← β₂·v + (1 − β₂)·g²                   from 0
    /// p ← p − lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
    /// ```
    ///
    /// Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014; as
    /// [`torch.optim.Adam`](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html), whose defaults it has,
    /// without `amsgrad` and `maximize`. The powers of `β` are computed in `f64`.
    ///
    /// # Examples
    /// ```
    /// use gradpact::optim::{Adam, Optimizer};
    /// use gradpact::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let mut w = Tensor::<f16, f32>::ones([2])?.requiring_grad()?;
    /// let mut optimizer = Optimizer::new(Adam::new(0.25).betas(0.9, 0.95))?.master_weights(true);
    /// w.mul_scalar(1e-3)?.sum()?.backward()?;
    /// optimizer.step(&mut [&mut w])?;
    /// assert_eq!(w.to_vec()?, [f16::from_f32(0.75); 2]); // the first step has the length of the learning rate
    /// # Ok(())
    /// # }
    /// ```
    Adam, decay 0.0, |numbers| (numbers.weight_decay, 1.0)
}

adam! {
    /// Adam, with weight decay apart from the gradient; 0.01 by default.
    ///
    /// For parameter `p`, gradient `g` and step `t`, with `λ` the weight decay:
    ///
    /// ```text
    /// m ← m + (1 − β₁)·(g − m)                 from 0
    /// v ← β₂·v + (1 − β₂)·g²                   from 0
    /// p ← (1 − lr·λ)·p − lr/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
    /// ```
    ///
    /// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2017; as
    /// [`torch.optim.AdamW`](https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html), whose defaults it has,
    /// without `amsgrad` and `maximize`. The powers of `β` are computed in `f64`.
    AdamW, decay 0.01, |numbers| (0.0, 1.0 - numbers.lr * numbers.weight_decay)
}
