//! Replays what PyTorch 2.14.1 was measured to do, bit for bit.
//!
//! `torch-2.14.1.jsonl` has a line for each case, named by what it does; the names are read, so that cases which are
//! not in the file can be added to it. Each case ends in one of three ways: it does here what it does in PyTorch; or it
//! differs by a rule of ours, and then does what exact arithmetic makes of that rule; or it is left out. The rules are in
//! `rules`, the reasons for leaving out in `left_out`, what errors must say in `messages`. These, the reading of cases and what is run for those that other engines
//! share are in the library of this crate: hosts replay them too.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod api;
mod built_in;
mod casts;
mod checks;
mod creation;
mod families;
mod hooks;
mod leaves;
mod matrix;
mod nonleaf;
mod probe;
mod regions;
mod returns;
mod setter;
mod sums;
mod surroundings;

use std::panic::catch_unwind;

use gradpact_tests::conformance::{MEASURED, TOLD, left_out, messages, num, outcome, row, rules, step};
use row::Row;
use rules::REASONS;
use step::{Step, Tally};

fn replay(row: &Row) -> Step {
    if let Some(reason) = left_out::reason(&row.id) {
        return Step::left(reason);
    }
    let family = row.id.split('/').next().unwrap();
    match family {
        "1.direct" | "1.clone" | "1.function" => matrix::entry(row),
        "1.float_sum" => matrix::float_sum(row),
        "1.down" => matrix::down(row),
        "1.chain" => matrix::chain(row),
        "1.implicit_scalar_grad" => matrix::implicit_seed(row),
        "1.multi_root_same_y" => matrix::two_roots(row),
        "4.unused" => sums::unused(row),
        "4.undefined_gradient" => sums::undefined(row),
        "5.dtype" => returns::dtype(row),
        "5.kind" | "5.count" => returns::count(row),
        "5.shape" => returns::returned_shape(row),
        "5.order" => returns::order(row),
        "5.root_gradient" => returns::seed(row),
        "5.downstream_shape" => returns::sent_shape(row),
        "6.observe" => hooks::observe(row),
        "6.return" => hooks::returned(row),
        "6.post_accumulate_on_non_leaf" => hooks::after_a_non_leaf(row),
        "6.retain_grad_twice" => hooks::retained_twice(row),
        "6.order" => hooks::order(row),
        "7.effect" => leaves::effect(row),
        "7.twice" => leaves::twice(row),
        "7.int_grad_dtype_backward" => leaves::integer(row),
        "7.changed_after_graph_was_built" => leaves::changed_late(row),
        "7.setter" => setter::setter(row),
        "7.copies" => leaves::copies(row),
        "7.non_leaf" => leaves::non_leaf(row),
        "7.autograd_grad_of_leaf" => leaves::grad_of(row),
        "7.two_consumers_of_leaf" => leaves::two_consumers(row),
        "8.double" => nonleaf::double(row),
        "8.once_differentiable" => nonleaf::once(row),
        "8.cast_is_differentiable" => nonleaf::cast_is_differentiable(row),
        "9.nonleaf" => nonleaf::nonleaf(row),
        "11.node_creation_hook" => creation::replay(row),
        "13.autocast" => regions::autocast(row),
        "10.same_tensor_returned_twice" | "10.input_returned_twice" => surroundings::returned_twice(row),
        "10.retain" => surroundings::retain(row),
        "10.other_errors" => surroundings::other_errors(row),
        "15.checkpoint" => surroundings::checkpointed(row),
        _ => match row.group {
            2 => api::replay(row),
            12 => checks::gradcheck(row),
            3 => sums::consumers(row),
            10 => surroundings::views(row),
            15 => surroundings::surroundings(row),
            16 => casts::cast(row),
            _ => panic!("{}: neither replayed nor left out", row.id),
        },
    }
}

#[test]
fn every_measured_case_is_equal_or_differs_by_rule_or_is_left_out_for_a_reason() {
    let rows = Row::read_all(MEASURED).into_iter().chain(Row::read_all(TOLD));
    let Tally { counts, used, wrong } = Tally::of(rows, replay, messages::check);
    println!("{counts:#?}");
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    let unused: Vec<_> = REASONS.iter().filter(|(rule, _)| !used.contains(rule)).collect();
    assert!(unused.is_empty(), "rules that no case shows: {unused:?}");
}

#[test]
fn whole_families_of_cases_obey_the_rules_measured_or_not() {
    let mut wrong = Vec::new();
    let rows = families::all();
    for row in &rows {
        match catch_unwind(|| replay(row)) {
            Err(_) => wrong.push(format!("{}: panicked", row.id)),
            Ok(Step::Left(reason)) => assert_eq!(Some(reason), left_out::reason(&row.id)),
            Ok(Step::Ran(ran)) => wrong.extend(ran.obeys(&row.id).err()),
        }
    }
    assert!(rows.len() > 1000);
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}
