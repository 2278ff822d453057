//! Group 16: the conversion that admission applies, from every dtype to every other.

use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::row::Row;
use crate::rules::{Rule, Way, convert};
use crate::step::Step;

/// `16.cast/FROM->TO`.
pub fn cast(row: &Row) -> Step {
    let to = num::dtype(row.id.split_once("->").unwrap().1).unwrap();
    let from = row.incoming();
    let outcome = |num: Num| {
        let mut outcome = Outcome::default();
        outcome.extra.insert("result".to_owned(), vec![Some(num)]);
        outcome
    };
    let mut measured = row.measured(&[]);
    // The measured result comes without its dtype, which the id tells.
    let result = Num::measured(row.id.split_once("->").unwrap().1, &row.json["extra"]["result"]);
    measured.extra.insert("result".to_owned(), vec![result]);
    let ours = outcome(Num::of(&from.vector().cast(to).unwrap()));
    Step::modelled(ours, measured, Rule::RoundedOnce, outcome(convert(Way::Ours, &from, to)))
        .understood(outcome(convert(Way::PyTorch, &from, to)))
}
