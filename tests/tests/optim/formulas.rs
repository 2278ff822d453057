//! An independent implementation of the formulas, in `f64` on single numbers, as PyTorch's documentation has them.

/// The numbers of one rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Formula {
    Sgd { momentum: f64, dampening: f64, decay: f64, nesterov: bool },
    Adam { betas: (f64, f64), eps: f64, decay: f64, decoupled: bool },
}

/// Those of [`every_optimizer`](crate::support::every_optimizer), in the same order.
pub(crate) const EVERY: [Formula; 5] = [
    Formula::Sgd { momentum: 0.0, dampening: 0.0, decay: 0.0, nesterov: false },
    Formula::Sgd { momentum: 0.75, dampening: 0.3, decay: 0.1, nesterov: false },
    Formula::Sgd { momentum: 0.75, dampening: 0.0, decay: 0.1, nesterov: true },
    Formula::Adam { betas: (0.8, 0.9), eps: 1e-3, decay: 0.1, decoupled: false },
    Formula::Adam { betas: (0.6, 0.95), eps: 1e-8, decay: 0.2, decoupled: true },
];

/// One parameter that is a single number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    formula: Formula,
    steps: i32,
    first: f64,
    second: f64,
}

impl Number {
    pub(crate) fn new(formula: Formula) -> Self {
        Self { formula, steps: 0, first: 0.0, second: 0.0 }
    }

    /// The value after a step from `p` with gradient `g`.
    pub(crate) fn step(&mut self, lr: f64, p: f64, g: f64) -> f64 {
        self.steps += 1;
        match self.formula {
            Formula::Sgd { momentum, dampening, decay, nesterov } => {
                let g = g + decay * p;
                if momentum == 0.0 {
                    return p - lr * g;
                }
                self.first = if self.steps == 1 { g } else { momentum * self.first + (1.0 - dampening) * g };
                p - lr * if nesterov { g + momentum * self.first } else { self.first }
            }
            Formula::Adam { betas: (beta1, beta2), eps, decay, decoupled } => {
                let p = if decoupled { p - lr * decay * p } else { p };
                let g = if decoupled { g } else { g + decay * p };
                self.first = beta1 * self.first + (1.0 - beta1) * g;
                self.second = beta2 * self.second + (1.0 - beta2) * g * g;
                let mean = self.first / (1.0 - beta1.powi(self.steps));
                let square = self.second / (1.0 - beta2.powi(self.steps));
                p - lr * mean / (square.sqrt() + eps)
            }
        }
    }
}
