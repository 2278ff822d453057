//! What is written down while backward runs: who saw which gradients, in order.

use gradpact::DType;

/// A gradient as it came: dtype and values.
pub type Seen = Option<(DType, Vec<f64>)>;

/// Which call of a Function made a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// Which step's Function.
    pub step: usize,
    /// The Function inside its backward, for the gradient of the input at this position.
    pub inside: Option<usize>,
    /// The backward in which that was; 0 for the forward.
    pub pass: usize,
}

impl Label {
    /// The Function of a step.
    pub fn of_step(step: usize) -> Self {
        Self { step, inside: None, pass: 0 }
    }

    /// Its name in errors.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 16] = [
            "F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12", "F13", "F14",
            "F15",
        ];
        if self.inside.is_some() { "Inside" } else { NAMES.get(self.step).unwrap_or(&"F") }
    }
}

/// Who saw something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The hook of this number.
    Hook(usize),
    /// The backward of a Function.
    Function(Label),
}

/// One call of a backward or a hook, with gradients of type `G`.
#[derive(Clone, Debug)]
pub struct Entry<G = (DType, Vec<f64>)> {
    /// Who was called.
    pub who: Who,
    /// What it was given; a hook after a node the gradients of the inputs, then those of the outputs.
    pub saw: Vec<Option<G>>,
    /// Of which inputs the backward of a Function was asked for a gradient.
    pub needs: Vec<bool>,
}
