//! Replays in libtorch what PyTorch 2.14.1 was measured to do, bit for bit: the same cases as on the embedded engine, run by the same
//! code, with libtorch's own operations around the Functions and libtorch's own engine behind them.
//!
//! Each case ends in one of three ways: it does here what it does in PyTorch; or it differs by a rule of ours; or it is left out,
//! for a reason that `left_out` states.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod consumers;
mod in_place;
mod left_out;
mod messages;
mod subject;

use gradpact::{BackwardOptions, DType, DynTensor, Error, GradDType};
use gradpact_tests::conformance::num::Num;
use gradpact_tests::conformance::outcome::{Failed, Outcome};
use gradpact_tests::conformance::probe::{Log, Probe};
use gradpact_tests::conformance::row::{Row, declaration};
use gradpact_tests::conformance::rules::{OF_HOSTS, Rule};
use gradpact_tests::conformance::runs::api::{self, without_flags_of_failures};
use gradpact_tests::conformance::runs::nonleaf::{self, CAST, DOUBLE, IN_BACKWARD, NONLEAF, REQUIRES_GRAD};
use gradpact_tests::conformance::runs::returns::{self, HOOK, Returned, tenth};
use gradpact_tests::conformance::runs::surroundings::{self, GRAPH, View};
use gradpact_tests::conformance::runs::{matrix, sums};
use gradpact_tests::conformance::step::{Step, Tally};
use gradpact_tests::conformance::{MEASURED, Subject as _, TOLD};
use gradpact_torch::FromTch as _;
use tch::{Device, Kind, Tensor};

use subject::Libtorch;

fn equal(row: &Row, ours: Outcome) -> Step {
    Step::equal(ours, row.measured(&[]))
}

fn by(rule: Rule, row: &Row, ours: Outcome, by_rule: Outcome) -> Step {
    Step::modelled(ours, row.measured(&[]), rule, by_rule)
}

fn failing(phase: &str) -> Outcome {
    Outcome { failed: Some(Failed::measured(phase)), ..Outcome::default() }
}

fn replay(row: &Row) -> Step {
    if let Some(reason) = left_out::reason(&row.id) {
        return Step::left(reason);
    }
    match row.id.split('/').next().unwrap() {
        "1.direct" | "1.clone" | "1.function" => equal(row, matrix::entry::<Libtorch>(row)),
        "1.float_sum" => equal(row, matrix::float_sum::<Libtorch>(row)),
        "1.down" => {
            let (name, _) = row.rest().rsplit_once('/').unwrap();
            let Some(operation) = consumers::operation(name) else { panic!("{}: no such operation", row.id) };
            equal(row, matrix::down::<Libtorch>(row, operation))
        }
        "1.chain" => Step::equal(matrix::chain::<Libtorch>(row), row.measured(&["outer_received"])),
        "1.implicit_scalar_grad" => equal(row, matrix::implicit_seed::<Libtorch>()),
        "1.multi_root_same_y" => equal(row, matrix::two_roots::<Libtorch>()),
        "4.unused" => match sums::unused::<Libtorch>(row) {
            Some(ours) => by(Rule::DeclaredZeros, row, ours, sums::unused_by_rule(row)),
            None => Step::left("complex dtypes"),
        },
        "4.undefined_gradient" => {
            by(Rule::DeclaredZeros, row, sums::undefined::<Libtorch>(row), sums::undefined_by_rule(row))
        }
        "5.dtype" => returned_dtype(row),
        "5.kind" | "5.count" => equal(row, returns::count::<Libtorch>(row)),
        "5.shape" => {
            let by_rule = Outcome::failed_after(tenth(returns::returned_count(row)));
            by(Rule::LargerShape, row, returns::returned_shape::<Libtorch>(row), by_rule)
        }
        "5.layout" => sparse(row),
        "5.order" => {
            let by_rule = Outcome::failed_after(tenth(2));
            by(Rule::LargerShape, row, returns::order::<Libtorch>(), by_rule)
        }
        "5.root_gradient" => equal(row, returns::seed::<Libtorch>(row)),
        "5.downstream_shape" => {
            by(Rule::LargerShape, row, returns::sent_shape::<Libtorch>(row), failing("backward"))
        }
        "8.double" => {
            let measured = row.measured(&DOUBLE).telling(IN_BACKWARD, nonleaf::in_backward(row, node));
            Step::equal(nonleaf::double::<Libtorch>(row), measured)
        }
        "8.once_differentiable" => once(row),
        "8.cast_is_differentiable" => {
            let (fact, graphs) = CAST;
            let mut measured = row.measured(&[fact]);
            for name in graphs {
                measured = measured.telling(name, node(&row.told(name).unwrap_or_default()));
            }
            Step::equal(nonleaf::cast_is_differentiable::<Libtorch>(row), measured)
        }
        "9.nonleaf" => of_nonleaf(row),
        "10.same_tensor_returned_twice" | "10.input_returned_twice" => {
            let by_rule = surroundings::returned_twice_by_rule();
            by(Rule::OutputsApart, row, surroundings::returned_twice::<Libtorch>(row), by_rule)
        }
        "10.retain" => equal(row, surroundings::retain::<Libtorch>(row)),
        "10.other_errors" => other_errors(row),
        "10.then_inplace" => in_place::doubled(row),
        "10.saved" => in_place::saved(row),
        _ => match row.group {
            2 => declared(row),
            3 => {
                let kept = row.json["inputs"]["kept_alive"] == true;
                let measured = row.measured(if kept { &["kept_after"] } else { &[] });
                Step::equal(sums::consumers::<Libtorch>(row), measured)
            }
            10 => {
                let told = &row.json["extra"]["grad_fn"];
                let name = told.as_str().unwrap_or_default();
                let measured = row.measured(&[]).telling(GRAPH, name);
                Step::equal(View::read(row).run::<Libtorch>(), measured)
            }
            _ => panic!("{}: neither replayed nor left out", row.id),
        },
    }
}

/// The node of a measured graph: libtorch's nodes can be asked for their name, not for what they lead to.
fn node(graph: &str) -> String {
    graph.split('(').next().unwrap_or_default().to_owned()
}

/// Group 2: what may be declared.
fn declared(row: &Row) -> Step {
    let Some(mut ours) = api::replay::<Libtorch>(row) else {
        return Step::left("a dtype that we do not have");
    };
    let rule = match api::name(row) {
        ("nondiff_dtype_for_float_output", _) | (_, "int_dtype") => (Rule::DeclaredNotFloat, "forward"),
        ("int_gradient" | "bool_gradient", _) => (Rule::IntegerSeed, "backward"),
        _ => {
            return Step::equal(
                without_flags_of_failures(ours),
                without_flags_of_failures(api::measured(row)),
            );
        }
    };
    ours.extra.clear();
    by(rule.0, row, ours, failing(rule.1))
}

/// `5.dtype/…`: a gradient of some dtype for a leaf of some dtype.
fn returned_dtype(row: &Row) -> Step {
    let Some(case) = Returned::read(row) else { return Step::left("complex dtypes") };
    let ours = case.run::<Libtorch>();
    if !case.dtype.is_float() {
        return by(Rule::IntegerGradient, row, ours, Outcome::failed_after(tenth(2)));
    }
    Step::equal(ours, row.measured(if case.nonleaf { &[HOOK] } else { &[] }))
}

/// `5.layout/sparse_coo…`: backward returns a sparse gradient.
fn sparse(row: &Row) -> Step {
    let kind = if row.id.ends_with("_f16") { Kind::Half } else { Kind::Float };
    let log = Log::default();
    let x = Libtorch::ones(DType::F32, 2);
    let probe = Probe::<Libtorch>::cast(&log, DType::F16, Some(GradDType::Exactly(DType::F32)));
    let probe = probe.backward(move |_, _| {
        let sparse = Tensor::ones([2], (kind, Device::Cpu)).to_sparse_sparse_dim(1);
        Ok(DynTensor::from_tch(sparse)?.into())
    });
    let y = probe.on(&x).unwrap()[0].clone();
    let result = y.backward_with(&Libtorch::vector(&tenth(2)), BackwardOptions::new());
    let ours = Outcome::left::<Libtorch>(&log, Some(&x)).failing("backward", result);
    by(Rule::Dense, row, ours, Outcome::failed_after(tenth(2)))
}

/// `8.once_differentiable/…`.
fn once(row: &Row) -> Step {
    let ours = nonleaf::once::<Libtorch>(row);
    let told = nonleaf::in_backward(row, node);
    if !nonleaf::is_plain(row) {
        return Step::equal(ours, row.measured(&["gx"]).telling(IN_BACKWARD, told));
    }
    let measured = row.measured(&[]).telling(IN_BACKWARD, told);
    // It depends on x, so its derivative is not nothing: it is unknown.
    let by_rule = measured.clone().telling(REQUIRES_GRAD, "true");
    let measured = measured.telling(REQUIRES_GRAD, row.told(REQUIRES_GRAD).unwrap());
    Step::modelled(ours, measured, Rule::OnceIsSaid, by_rule)
}

/// `9.nonleaf/DECLARED`: only the zeros of an unused y differ, which have the declared dtype.
fn of_nonleaf(row: &Row) -> Step {
    let measured = nonleaf::measured_nonleaf(row);
    let dtype = declaration(row.rest()).and_then(GradDType::dtype).unwrap_or(DType::F16);
    let by_rule = measured.clone().noting(NONLEAF[5], vec![Some(Num::exactly(dtype, &[0.0]))]);
    Step::modelled(nonleaf::nonleaf::<Libtorch>(row), measured, Rule::DeclaredZeros, by_rule)
}

/// `10.other_errors`, those that can be made here: libtorch finds all three.
fn other_errors(row: &Row) -> Step {
    let errors = surroundings::other_errors::<Libtorch>().map(|error| error.unwrap());
    let words = ["does not require grad", "scalar outputs", "appears to not have been used in the graph"];
    for (error, words) in errors.iter().zip(words) {
        assert!(matches!(error.root(), Error::Custom(_)) && error.to_string().contains(words), "{error}");
    }
    equal(row, Outcome::default())
}

#[test]
fn every_measured_case_is_equal_in_libtorch_or_differs_by_rule_or_is_left_out_for_a_reason() {
    let rows = Row::read_all(MEASURED).into_iter().chain(Row::read_all(TOLD));
    let rows = rows.filter(|row| left_out::GROUPS.contains(&row.group));
    let Tally { counts, used, wrong } = Tally::of(rows, replay, messages::check);
    println!("{counts:#?}");
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    let unused: Vec<_> = OF_HOSTS.iter().filter(|(rule, _)| !used.contains(rule)).collect();
    assert!(unused.is_empty(), "rules that no case shows: {unused:?}");
    let replayed: usize = counts.values().map(|counts| counts.equal + counts.deviating).sum();
    assert!(replayed > 900, "{replayed}");
}
