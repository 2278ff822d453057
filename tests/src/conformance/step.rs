//! What became of the measured cases: of one, and of all.

use std::collections::{BTreeMap, HashSet};
use std::panic::{RefUnwindSafe, catch_unwind};

use super::outcome::{Failed, Outcome};
use super::row::Row;
use super::rules::Rule;

/// One case, replayed or left out.
#[derive(Debug)]
pub enum Step {
    /// It ran.
    Ran(Box<Ran>),
    /// It cannot be expressed here, for this reason.
    Left(&'static str),
}

/// A case that ran.
#[derive(Debug)]
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

impl Ran {
    /// Whether a case did what our rules demand, where that was worked out.
    ///
    /// # Errors
    /// What it had to be, and what it was.
    pub fn obeys(&self, id: &str) -> Result<(), String> {
        match &self.by_rule {
            Some((_, expected)) if *expected != self.ours => {
                Err(format!("{id}:\n  by rule {expected:?}\n  but was {:?}", self.ours))
            }
            _ => Ok(()),
        }
    }

    /// How the case ended: as in PyTorch, or by a rule of ours. `says` tells whether an error of ours is the right one.
    ///
    /// # Errors
    /// If it is neither.
    pub fn judge(
        &self,
        id: &str,
        says: impl Fn(&str, &Failed) -> Result<(), String>,
    ) -> Result<Option<Rule>, String> {
        let Self { ours, measured, by_rule, model } = self;
        if let Some(model) = model.as_ref().filter(|model| *model != measured) {
            return Err(format!("{id}:\n  PyTorch {measured:?}\n  is understood as {model:?}"));
        }
        self.obeys(id)?;
        if let Some(failed) = &ours.failed {
            says(id, failed)?;
        }
        match by_rule {
            _ if ours == measured => Ok(None),
            Some((rule, _)) => Ok(Some(*rule)),
            None => Err(format!("{id}:\n  PyTorch {measured:?}\n  but was {ours:?}")),
        }
    }
}

/// How many cases of a group ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// As in PyTorch.
    pub equal: usize,
    /// By a rule.
    pub deviating: usize,
    /// Not replayed.
    pub left_out: usize,
}

/// How all cases ended.
#[derive(Debug, Default)]
pub struct Tally {
    /// By group.
    pub counts: BTreeMap<u64, Counts>,
    /// The rules that made a difference.
    pub used: HashSet<Rule>,
    /// What ended in none of the three ways.
    pub wrong: Vec<String>,
}

impl Tally {
    /// Replays the cases.
    pub fn of(
        rows: impl IntoIterator<Item = Row>,
        replay: impl Fn(&Row) -> Step + RefUnwindSafe,
        says: impl Fn(&str, &Failed) -> Result<(), String>,
    ) -> Self {
        let mut tally = Self::default();
        for row in rows {
            let counts = tally.counts.entry(row.group).or_default();
            // A panic in one case must not hide the others.
            match catch_unwind(|| replay(&row)) {
                Err(_) => tally.wrong.push(format!("{}: panicked", row.id)),
                Ok(Step::Left(_)) => counts.left_out += 1,
                Ok(Step::Ran(ran)) => match ran.judge(&row.id, &says) {
                    Ok(None) => counts.equal += 1,
                    Ok(Some(rule)) => {
                        counts.deviating += 1;
                        tally.used.insert(rule);
                    }
                    Err(problem) => tally.wrong.push(problem),
                },
            }
        }
        tally
    }
}
