//! Hooks see every gradient in the declared dtype, in their order, and what they make of it counts.

use gradpact::{BackwardOptions, DynTensor, backward, grad};
use gradpact_tests::lab::{Lab, Run, seen};
use gradpact_tests::plan::{Hook, HookKind};
use gradpact_tests::program::{Pick, Program};
use gradpact_tests::reference::Reference;
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::{prop_assert, prop_assert_eq};

use crate::strategy::{hooks, pick, program};
use crate::{Verdict, agrees, identical, picked, same_log};

super::on_every_engine! {
    hooks_run_in_order_on_declared_dtypes_and_replace_what_is_sent_on(51, 800, case()) => ordered;
    hooks_hold_for_gradients_that_are_asked_for(52, 500, case()) => asked;
    hooks_that_only_look_change_no_bit(53, 400, case()) => observers;
}

/// A program, hooks on it, and variables.
fn case() -> impl Strategy<Value = (Program, Vec<Hook>, Vec<Pick>)> {
    (program(), hooks(), vec(pick(), 1..=4))
}

type Case = (Program, Vec<Hook>, Vec<Pick>);

/// Compares what all tensors hold: leaves, and those that retain their gradient.
fn same_grads<E: Lab>(run: &Run<E>, reference: &Reference<'_>) -> Verdict {
    for (position, variable) in run.variables.iter().enumerate() {
        let (got, expected) = (seen(variable.grad().as_ref())?, reference.grad(position));
        prop_assert!(agrees(&got, expected), "variable {position}: {got:?}, {expected:?}");
    }
    Ok(())
}

fn ordered<E: Lab>((program, hooks, _): &Case) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    reference.register(hooks);
    run.register(hooks)?;
    // The second time without those that have removed themselves, and recorded.
    for options in [BackwardOptions::new().retain_graph(), BackwardOptions::new().create_graph()] {
        backward(&run.roots(), options)?;
        let recorded = options == BackwardOptions::new().create_graph();
        same_log(&run.take_log(), &reference.backward(recorded).log)?;
        same_grads(&run, &reference)?;
    }
    run.variables.iter().for_each(DynTensor::zero_grad);
    Ok(())
}

fn asked<E: Lab>((program, hooks, picks): &Case) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    reference.register(hooks);
    run.register(hooks)?;
    let targets = picked(&reference, picks);
    let inputs: Vec<_> = targets.iter().map(|&target| &run.variables[target]).collect();
    let got = grad(&run.roots(), &inputs, BackwardOptions::new().allow_unused())?;
    let ids: Vec<_> = targets.iter().map(|&target| reference.variable(target)).collect();
    let outcome = reference.asked(&ids);
    same_log(&run.take_log(), &outcome.log)?;
    for (got, &id) in got.iter().zip(&ids) {
        let (got, expected) = (seen(got.as_ref())?, outcome.gradient(id).map(|grad| reference.tensor(grad)));
        prop_assert!(agrees(&got, expected), "{got:?}, {expected:?}");
    }
    same_grads(&run, &reference)
}

fn observers<E: Lab>((program, hooks, _): &Case) -> Verdict {
    let (plain, watched) = (Run::<E>::new(program)?, Run::<E>::new(program)?);
    let mut hooks = hooks.clone();
    hooks.iter_mut().for_each(|hook| hook.replaces = None);
    hooks.retain(|hook| hook.kind != HookKind::Retain);
    watched.register(&hooks)?;
    backward(&plain.roots(), BackwardOptions::new())?;
    backward(&watched.roots(), BackwardOptions::new())?;
    for (a, b) in plain.variables.iter().zip(&watched.variables) {
        let (a, b) = (seen(a.grad().as_ref())?, seen(b.grad().as_ref())?);
        prop_assert!(identical(&a, &b), "{a:?} {b:?}");
    }
    let functions = |run: &Run<E>| run.take_log().iter().filter(|entry| !entry.needs.is_empty()).count();
    prop_assert_eq!(functions(&plain), functions(&watched));
    Ok(())
}
