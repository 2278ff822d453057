//! Groups 10 and 15, as far as tensors that do not change can express them: views, saved tensors, several backwards.

use std::sync::Arc;

use gradpact::autograd::checkpoint;
use gradpact::{BackwardOptions, DType, DynTensor, Error, GradDType, apply};
use gradpact_tests::conformance::Embedded;
use gradpact_tests::conformance::runs::surroundings::{self as runs, GRAPH, View, seed};

use crate::built_in;
use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::probe::{Log, Probe, ones};
use crate::row::{Row, declaration, grad_dtype};
use crate::rules::{Rule, Way, admitted, carried};
use crate::step::Step;

const F32: GradDType = GradDType::Exactly(DType::F32);

/// The name of a leaf's node.
const LEAF: &str = "AccumulateGrad";

/// `10.input_as_is/…`, `10.returns_…` and `10.then_view/…`: outputs that share their values with the input.
pub(crate) fn views(row: &Row) -> Step {
    let case = View::read(row);
    let (declared, view, leaf) = (case.declared, case.viewed(), case.of_leaf());
    let mut ours = case.run::<Embedded>();
    let graph = ours.told.remove(GRAPH).unwrap();
    let (name, next) = graph.split_once('(').unwrap();
    let next = if next.starts_with(LEAF) { LEAF } else { "operation" };
    let ours = ours.telling("grad_fn", name).telling("next", next);
    let outcome = |way| {
        let between = match (view, way) {
            (false, _) => GradDType::Any,
            (true, Way::PyTorch) => GradDType::Exactly(DType::F16),
            (true, Way::Ours) => carried(DType::F16, declared),
        };
        let received = admitted(way, &admitted(way, &seed(), between), declared);
        let outcome = Outcome::once(received.clone(), received.rounded(DType::F16));
        outcome.telling("grad_fn", "F").telling("next", if leaf { LEAF } else { "operation" })
    };
    let mut measured = row.measured(&[]);
    for fact in ["grad_fn", "next"] {
        // A name, or a list of one: whose names other operations have, each framework says for itself.
        let told = &row.json["extra"][fact];
        let name = told.as_str().or_else(|| told[0].as_str()).unwrap_or_default();
        let names = [("FBackward", "F"), ("torch::autograd::AccumulateGrad", LEAF)];
        let name = names.into_iter().find(|known| known.0 == name).map_or("operation", |known| known.1);
        measured = measured.telling(fact, name);
    }
    Step::modelled(ours, measured, Rule::Carried, outcome(Way::Ours)).understood(outcome(Way::PyTorch))
}

/// `10.same_tensor_returned_twice` and `10.input_returned_twice`.
pub(crate) fn returned_twice(row: &Row) -> Step {
    let ours = runs::returned_twice::<Embedded>(row);
    Step::modelled(ours, row.measured(&[]), Rule::OutputsApart, runs::returned_twice_by_rule())
}

/// `10.retain/…`: several backwards through one graph.
pub(crate) fn retain(row: &Row) -> Step {
    Step::equal(runs::retain::<Embedded>(row), row.measured(&[]))
}

/// `10.other_errors`, those that can be made here.
pub(crate) fn other_errors(row: &Row) -> Step {
    let errors = runs::other_errors::<Embedded>();
    let expected = matches!(
        errors,
        [
            Some(Error::NoGraph(_)),
            Some(Error::SeedMissing { .. }),
            Some(Error::Unreachable { position: 0, .. })
        ]
    );
    assert!(expected, "{errors:?}");
    Step::equal(Outcome::default(), row.measured(&[]))
}

/// `15.checkpoint/use_reentrant=…`, of the families with `/OUT/DECLARED`: an f32 gradient of 1e-9 for a checkpointed Function.
pub(crate) fn checkpointed(row: &Row) -> Step {
    let (kind, out, declared) = match row.parts()[..] {
        [kind] => (kind, DType::F16, Some(F32)),
        [kind, out, declared] => (kind, num::dtype(out).unwrap(), declaration(declared)),
        _ => panic!("{}: no such case", row.id),
    };
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let (function, inside) = (Arc::new(Probe::cast(&log, out, declared)), x.clone());
    let run = move || apply(Arc::clone(&function), &[&inside]);
    let y = checkpoint(run).unwrap()[0].clone();
    // The graph is that of the Function, of either kind.
    assert_eq!(y.grad_fn().unwrap().name(), "F");
    let sent = Num::exactly(DType::F32, &[1e-9, 1e-9]);
    let result = y.backward_with(&sent.vector(), BackwardOptions::new());
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    let outcome = |way| {
        // A reentrant checkpoint is a node of its own, stored in f16, with nothing declared.
        let loses = way == Way::PyTorch && kind == "use_reentrant=True";
        let arrived = if loses { sent.rounded(out) } else { sent.clone() };
        let received = admitted(way, &arrived, declared.unwrap_or(GradDType::Exactly(out)));
        let x_grad = received.rounded(DType::F32);
        Outcome::once(received, x_grad)
    };
    let (by_rule, model) = (outcome(Way::Ours), outcome(Way::PyTorch));
    Step::modelled(ours, row.measured(&[]), Rule::CheckpointKeeps, by_rule).understood(model)
}

/// `15.aliasing/in_place_in_backward/DECLARED`: backward doubles its gradient, in PyTorch in place.
fn doubling(row: &Row, declared: GradDType) -> Step {
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let probe = Probe::cast(&log, DType::F16, Some(declared));
    let probe = probe.backward(|_, grads| Ok(built_in::doubled(grads[0].as_ref().unwrap())?.into()));
    let held = seed().vector();
    let result = probe.on(&x).unwrap()[0].backward_with(&held, BackwardOptions::new());
    let fact = "v afterwards";
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result).with(fact, &[Some(held)]);
    let received = admitted(Way::Ours, &seed(), declared);
    let doubled =
        Num::exactly(received.dtype, &received.values().iter().map(|value| 2.0 * value).collect::<Vec<_>>());
    let mut by_rule = Outcome::once(received, doubled.rounded(DType::F32));
    by_rule.extra.insert(fact.to_owned(), vec![Some(seed())]);
    Step::modelled(ours, row.measured(&[fact]), Rule::Immutable, by_rule)
}

/// Group 15: one Function, several gradients; a seed that somebody still holds; an error of the user's own.
pub(crate) fn surroundings(row: &Row) -> Step {
    if let ["in_place_in_backward", declared] = row.parts()[..] {
        return doubling(row, grad_dtype(declared).unwrap());
    }
    let log = Log::default();
    let single = row.id == "15.functional_call_same_node_many_backward";
    let x = ones(DType::F32, if single { 1 } else { 2 });
    let failing = row.id == "15.exception_in_backward";
    let probe = Probe::cast(&log, DType::F16, Some(F32));
    let probe = if failing { probe.backward(|_, _| Err(Error::custom("mine"))) } else { probe };
    let y = probe.on(&x).unwrap()[0].clone();
    let seeds = match row.id.as_str() {
        "15.functional_call_same_node_many_backward" => {
            [DType::F16, DType::F32, DType::F64].map(|dtype| Num::exactly(dtype, &[0.1])).to_vec()
        }
        "15.library_custom_op" => vec![Num::exactly(DType::F32, &[1e-9, 1e-9])],
        "15.exception_in_backward" => vec![Num::exactly(DType::F32, &[1.0, 1.0])],
        "15.aliasing/no_cast_needed" => vec![seed()],
        other => panic!("{other}: no such case"),
    };
    let held: Vec<DynTensor> = seeds.iter().map(Num::vector).collect();
    let options = BackwardOptions::new().retain_graph();
    let result = held.iter().try_for_each(|seed| y.backward_with(seed, options));
    for (seed, tensor) in seeds.iter().zip(&held) {
        assert_eq!(&Num::of(tensor), seed, "a seed that the caller holds is left alone");
    }
    let leaf = (!failing).then_some(&x);
    Step::equal(Outcome::of(&log, leaf).failing("backward", result), row.measured(&[]))
}
