//! Group 2: what may be declared, when, and which mistakes are errors.

use gradpact::DType;
use gradpact_tests::conformance::Embedded;
use gradpact_tests::conformance::runs::api::{self, without_flags_of_failures};

use crate::num::Num;
use crate::outcome::{Failed, Outcome};
use crate::row::Row;
use crate::rules::Rule;
use crate::step::Step;

fn failing(phase: &str) -> Outcome {
    Outcome { failed: Some(Failed::measured(phase)), ..Outcome::default() }
}

/// Where a rule of ours makes a difference: which, and what must come of the case.
fn rule(row: &Row) -> Option<(Rule, Outcome)> {
    Some(match api::name(row) {
        ("nondiff_dtype_for_float_output", _) | (_, "int_dtype") => {
            (Rule::DeclaredNotFloat, failing("forward"))
        }
        ("int_gradient" | "bool_gradient", _) => (Rule::IntegerSeed, failing("backward")),
        ("slot", "concrete_for_int_output") => {
            let ones = Num::exactly(DType::F32, &[1.0, 1.0]);
            let zeros = Num::exactly(DType::F32, &[0.0, 0.0]);
            let received = vec![vec![Some(ones.clone()), Some(zeros)]];
            let outcome = Outcome { received, x_grad: Some(ones), ..Outcome::default() };
            (Rule::StraightThrough, outcome)
        }
        _ => return None,
    })
}

/// A case of group 2 that [`left_out`](crate::left_out) does not list.
pub(crate) fn replay(row: &Row) -> Step {
    let Some(mut ours) = api::replay::<Embedded>(row) else {
        return Step::left("a dtype that we do not have");
    };
    match rule(row) {
        Some((rule, by_rule)) => {
            let mut measured = row.measured(&[]);
            measured.extra.clear();
            ours.extra.clear();
            Step::modelled(ours, measured, rule, by_rule)
        }
        None => Step::equal(without_flags_of_failures(ours), without_flags_of_failures(api::measured(row))),
    }
}
