//! What a case led to: here, as measured, and as our rules say it must.

use std::collections::BTreeMap;

use gradpact::function::Graph as _;
use gradpact::{DynTensor, Error};

use super::num::Num;
use super::probe::Log;
use super::subject::{Dyn, Subject};

/// What backward received, what the leaf got, and whether it failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// For each call of backward, for each output, what came.
    pub received: Vec<Vec<Option<Num>>>,
    /// The gradient of the leaf.
    pub x_grad: Option<Num>,
    /// Other tensors, by name.
    pub extra: BTreeMap<String, Vec<Option<Num>>>,
    /// Other facts, in words.
    pub told: BTreeMap<String, String>,
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
        Self { phase: phase.to_owned(), kind: kind(error.root()).to_owned(), message: error.to_string() }
    }
}

/// The name of the variant, for those that the measured cases lead to.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::CalledTwice { .. } => "CalledTwice",
        Error::Custom(_) => "Custom",
        Error::DType { .. } => "DType",
        Error::DeclarationCount { .. } => "DeclarationCount",
        Error::DeclaredNonDifferentiable(_) => "DeclaredNonDifferentiable",
        Error::DeclaredNotFloat { .. } => "DeclaredNotFloat",
        Error::DifferentiableOnce(_) => "DifferentiableOnce",
        Error::Gradient(_) => "Gradient",
        Error::GradientCount { .. } => "GradientCount",
        Error::GradientNotFloat { .. } => "GradientNotFloat",
        Error::GradPresent { .. } => "GradPresent",
        Error::HookChanged { .. } => "HookChanged",
        Error::NodeInCreationHook(_) => "NodeInCreationHook",
        Error::NotALeaf { .. } => "NotALeaf",
        Error::OwnGrad => "OwnGrad",
        Error::SavedFreed(_) => "SavedFreed",
        Error::SeedMissing { .. } => "SeedMissing",
        _ => "another",
    }
}

impl Outcome {
    /// One call of backward with one output, and its leaf.
    pub fn once(received: Num, x_grad: Num) -> Self {
        Self { received: vec![vec![Some(received)]], x_grad: Some(x_grad), ..Self::default() }
    }

    /// A backward that failed after one call with one output.
    pub fn failed_after(received: Num) -> Self {
        let failed = Some(Failed::measured("backward"));
        Self { received: vec![vec![Some(received)]], failed, ..Self::default() }
    }

    /// What a run on the embedded engine left behind.
    pub fn of(log: &Log, leaf: Option<&DynTensor>) -> Self {
        Self::left::<super::Embedded>(log, leaf)
    }

    /// What a run left behind.
    pub fn left<S: Subject>(log: &Log, leaf: Option<&Dyn<S>>) -> Self {
        let x_grad = leaf.and_then(S::Engine::accumulated).as_ref().map(S::read);
        Self { received: log.calls(), x_grad, ..Self::default() }
    }

    /// The same, having failed in this phase.
    pub fn failing(mut self, phase: &str, result: Result<(), Error>) -> Self {
        self.failed = result.err().map(|error| Failed::ours(phase, &error));
        self
    }

    /// The same, with another fact of the embedded engine.
    pub fn with(self, name: &str, tensors: &[Option<DynTensor>]) -> Self {
        self.noting(name, tensors.iter().map(|tensor| tensor.as_ref().map(Num::of)).collect())
    }

    /// The same, with another fact.
    pub fn noting(mut self, name: &str, numbers: Vec<Option<Num>>) -> Self {
        self.extra.insert(name.to_owned(), numbers);
        self
    }

    /// The same, with a fact in words.
    pub fn telling(mut self, name: &str, words: impl Into<String>) -> Self {
        self.told.insert(name.to_owned(), words.into());
        self
    }
}
