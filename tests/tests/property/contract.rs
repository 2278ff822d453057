//! The contract of every tensor, kept in every backward of every program.

use std::cell::Cell;

use gradpact::{BackwardOptions, DynTensor, backward};
use gradpact_tests::lab::{Lab, Run, seen};
use gradpact_tests::log::{Entry, Seen, Who};
use gradpact_tests::program::{Program, Step};
use gradpact_tests::reference::Reference;
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};

use crate::strategy::program;
use crate::{Verdict, agrees, identical, leaf_grad, same_log, same_values};

super::on_every_engine! {
    every_tensor_shows_the_values_and_the_gradient_dtype_that_the_contract_gives_it(1, 700, program()) => forward;
    every_backward_receives_exactly_what_was_declared(2, 1200, program()) => received;
    every_leaf_gets_the_gradient_that_the_contract_gives_it_bit_for_bit(3, 1000, program()) => leaves;
    a_second_backward_through_a_retained_graph_doubles_every_gradient(4, 600, program()) => twice;
    recording_the_backward_changes_no_first_order_gradient(5, 600, program()) => create_graph;
}

fn forward<E: Lab>(program: &Program) -> Verdict {
    let (reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    prop_assert_eq!(reference.variables().count(), run.variables.len());
    for (tensor, variable) in reference.variables().zip(&run.variables) {
        prop_assert_eq!(tensor.dtype, variable.dtype());
        prop_assert!(same_values(&tensor.values, &E::values(variable)?), "{:?} {:?}", tensor, variable);
        prop_assert_eq!(tensor.contract.is_some(), variable.requires_grad());
        let shown = variable.grad_dtype().zip(variable.grad_dtype_source());
        prop_assert_eq!(tensor.shown_contract(), shown);
    }
    Ok(())
}

/// What `backward` wrote down.
fn log_of<E: Lab>(run: &Run<E>, options: BackwardOptions) -> Result<Vec<Entry>, TestCaseError> {
    backward(&run.roots(), options)?;
    Ok(run.take_log())
}

fn received<E: Lab>(program: &Program) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let log = log_of(&run, BackwardOptions::new())?;
    same_log(&log, &reference.backward(false).log)?;
    // Said once more without the reference: a declared dtype is the received one.
    for entry in &log {
        let Who::Function(label) = entry.who else { continue };
        let Step::Custom(custom) = &program.steps[label.step] else { continue };
        for (position, output) in custom.outputs.iter().enumerate() {
            if let (true, true, Some(declared), Some((dtype, _))) = (
                custom.declares,
                output.differentiable,
                custom.declaration(position).dtype(),
                &entry.saw[position],
            ) {
                prop_assert_eq!(declared, *dtype);
            }
        }
    }
    Ok(())
}

fn leaves<E: Lab>(program: &Program) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    log_of(&run, BackwardOptions::new())?;
    reference.backward(false);
    for (position, leaf) in run.leaves().iter().enumerate() {
        let (got, expected) = (leaf_grad(leaf)?, reference.grad(position));
        prop_assert!(agrees(&got, expected), "leaf {position}: {got:?}, {expected:?}");
        prop_assert!(!leaf.grad().is_some_and(|grad| grad.requires_grad()), "nothing was recorded");
    }
    Ok(())
}

fn twice<E: Lab>(program: &Program) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let first = log_of(&run, BackwardOptions::new().retain_graph())?;
    let second = log_of(&run, BackwardOptions::new().retain_graph())?;
    for (one, two) in first.iter().zip(&second) {
        prop_assert!(one.saw.iter().zip(&two.saw).all(|(a, b)| identical(a, b)), "{one:?} {two:?}");
    }
    prop_assert_eq!(first.len(), second.len());
    reference.backward(false);
    reference.backward(false);
    for (position, leaf) in run.leaves().iter().enumerate() {
        let (got, expected) = (leaf_grad(leaf)?, reference.grad(position));
        prop_assert!(agrees(&got, expected), "leaf {position}: {got:?}, {expected:?}");
    }
    Ok(())
}

fn create_graph<E: Lab>(program: &Program) -> Verdict {
    let (plain, recorded) = (Run::<E>::new(program)?, Run::<E>::new(program)?);
    let plain_log = log_of(&plain, BackwardOptions::new())?;
    let recorded_log = log_of(&recorded, BackwardOptions::new().create_graph())?;
    for (a, b) in plain_log.iter().zip(&recorded_log) {
        prop_assert!(a.saw.iter().zip(&b.saw).all(|(a, b)| identical(a, b)), "{a:?} {b:?}");
        prop_assert_eq!(&a.needs, &b.needs);
    }
    for (a, b) in plain.variables.iter().zip(&recorded.variables) {
        let (a, b): (Seen, Seen) = (seen(a.grad().as_ref())?, seen(b.grad().as_ref())?);
        prop_assert!(identical(&a, &b), "{a:?} {b:?}");
    }
    // A recorded gradient holds its leaf, and the leaf it: this lets both go.
    recorded.variables.iter().for_each(DynTensor::zero_grad);
    Ok(())
}

#[test]
fn the_reference_settles_most_gradients_to_the_bit() {
    let (certain, all, tried) = (Cell::new(0), Cell::new(0), Cell::new(0));
    crate::check(3, 1000, program(), |program| {
        tried.set(tried.get() + 1);
        let mut reference = Reference::new(&program);
        reference.backward(false);
        for grad in (0..program.leaves.len()).filter_map(|leaf| reference.grad(leaf)) {
            all.set(all.get() + 1);
            certain.set(certain.get() + usize::from(grad.certain));
        }
        Ok(())
    });
    let (certain, all) = (certain.get(), all.get());
    assert!(all * 2 > tried.get() && certain * 4 > all * 3, "{certain} of {all} leaf gradients");
}
