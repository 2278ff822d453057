//! What became of one measured case here.

use crate::outcome::Outcome;
use crate::rules::Rule;

/// One case, replayed or left out.
pub enum Step {
    /// It ran.
    Ran(Box<Ran>),
    /// It cannot be expressed here, for this reason.
    Left(&'static str),
}

/// A case that ran.
pub struct Ran {
    /// What happened here.
    pub ours: Outcome,
    /// What happened in PyTorch.
    pub measured: Outcome,
    /// What must happen here by a rule of ours, where that was worked out apart from the run.
    pub by_rule: Option<(Rule, Outcome)>,
    /// What the known rules of PyTorch make of it: what was measured, if they are understood.
    pub model: Option<Outcome>,
}

impl Step {
    /// A case for which no rule of ours changes anything.
    pub fn equal(ours: Outcome, measured: Outcome) -> Self {
        Self::Ran(Box::new(Ran { ours, measured, by_rule: None, model: None }))
    }

    /// A case for which our rules demand this outcome: `rule` is what makes it differ from PyTorch's, where it does.
    pub fn modelled(ours: Outcome, measured: Outcome, rule: Rule, by_rule: Outcome) -> Self {
        Self::Ran(Box::new(Ran { ours, measured, by_rule: Some((rule, by_rule)), model: None }))
    }

    /// The same, with what PyTorch's own rules make of the case.
    pub fn understood(mut self, model: Outcome) -> Self {
        if let Self::Ran(ran) = &mut self {
            ran.model = Some(model);
        }
        self
    }

    /// A case that is left out.
    pub fn left(reason: &'static str) -> Self {
        Self::Left(reason)
    }
}
