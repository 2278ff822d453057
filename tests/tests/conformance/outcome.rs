//! What a case led to: here, as measured, and as our rules say it must.

use std::collections::BTreeMap;

use gradpact::{DynTensor, Error};

use crate::num::Num;
use crate::probe::Log;

/// What backward received, what the leaf got, and whether it failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// For each call of backward, for each output, what came.
    pub received: Vec<Vec<Option<Num>>>,
    /// The gradient of the leaf.
    pub x_grad: Option<Num>,
    /// Other tensors, by name.
    pub extra: BTreeMap<String, Vec<Option<Num>>>,
    /// What went wrong.
    pub failed: Option<Failed>,
}

/// An error. Two are equal if they came at the same time: what ours must say is told by the table of messages.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// `forward`, `backward` or another stage.
    pub phase: String,
    /// The variant of our error.
    pub kind: String,
    /// Our text.
    pub message: String,
}

impl PartialEq for Failed {
    fn eq(&self, other: &Self) -> bool {
        self.phase == other.phase
    }
}

impl Failed {
    /// An error of PyTorch's.
    pub fn measured(phase: &str) -> Self {
        Self { phase: phase.to_owned(), ..Self::default() }
    }

    /// An error of ours.
    pub fn ours(phase: &str, error: &Error) -> Self {
        let kind = format!("{:?}", error.root());
        let kind = kind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned();
        Self { phase: phase.to_owned(), kind, message: error.to_string() }
    }
}

impl Outcome {
    /// One call of backward with one output, and its leaf.
    pub fn once(received: Num, x_grad: Num) -> Self {
        Self { received: vec![vec![Some(received)]], x_grad: Some(x_grad), ..Self::default() }
    }

    /// What a run left behind.
    pub fn of(log: &Log, leaf: Option<&DynTensor>) -> Self {
        let x_grad = leaf.and_then(DynTensor::grad).as_ref().map(Num::of);
        Self { received: log.calls(), x_grad, ..Self::default() }
    }

    /// The same, having failed in this phase.
    pub fn failing(mut self, phase: &str, result: Result<(), Error>) -> Self {
        self.failed = result.err().map(|error| Failed::ours(phase, &error));
        self
    }

    /// The same, with another fact.
    pub fn with(mut self, name: &str, tensors: &[Option<DynTensor>]) -> Self {
        let tensors = tensors.iter().map(|tensor| tensor.as_ref().map(Num::of)).collect();
        self.extra.insert(name.to_owned(), tensors);
        self
    }
}
