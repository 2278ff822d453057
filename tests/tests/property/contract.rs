//! The contract of every tensor, kept in every backward of every program.

use std::cell::Cell;

use gradpact::{BackwardOptions, DynTensor, GradDType, backward};
use gradpact_tests::lab::{Call, Lab, Run, Seen, seen};
use gradpact_tests::program::{LeafGrad, Program, Step};
use gradpact_tests::reference::{Grad, Reference, combine};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};

use crate::strategy::program;
use crate::{Verdict, agrees, identical, leaf_grad, same_values};

super::on_every_engine! {
    every_tensor_shows_the_values_and_the_gradient_dtype_that_the_contract_gives_it(1, 1500, program()) => forward;
    every_backward_receives_exactly_what_was_declared(2, 2500, program()) => received;
    every_leaf_gets_the_gradient_that_the_contract_gives_it_bit_for_bit(3, 2500, program()) => leaves;
    a_second_backward_through_a_retained_graph_doubles_every_gradient(4, 1500, program()) => twice;
    recording_the_backward_changes_no_first_order_gradient(5, 1500, program()) => create_graph;
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
fn calls<E: Lab>(run: &Run<E>, options: BackwardOptions) -> Result<Vec<Call>, TestCaseError> {
    backward(&run.roots(), options)?;
    Ok(run.take_log())
}

fn received<E: Lab>(program: &Program) -> Verdict {
    let (reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let calls = calls(&run, BackwardOptions::new())?;
    let expected = reference.received();
    let steps: Vec<_> = calls.iter().map(|call| call.step).collect();
    prop_assert_eq!(&steps, &expected.iter().map(|(step, _)| *step).collect::<Vec<_>>(), "last step first");
    for (call, (step, expected)) in calls.iter().zip(&expected) {
        let Step::Custom(custom) = &program.steps[*step] else { continue };
        for (position, (got, expected)) in call.received.iter().zip(expected).enumerate() {
            prop_assert!(
                agrees(got, expected.as_ref()),
                "output {position} of step {step}: {got:?}, {expected:?}"
            );
            // Said once more without the reference: a declared dtype is the received one.
            if let (true, true, Some(declared), Some((dtype, _))) = (
                custom.declares,
                custom.outputs[position].differentiable,
                custom.declaration(position).dtype(),
                got,
            ) {
                prop_assert_eq!(declared, *dtype);
            }
        }
        prop_assert_eq!(call.received.len(), custom.outputs.len());
    }
    Ok(())
}

fn leaves<E: Lab>(program: &Program) -> Verdict {
    let (reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    calls(&run, BackwardOptions::new())?;
    for (position, leaf) in run.variables[..program.leaves.len()].iter().enumerate() {
        let (got, expected) = (leaf_grad(leaf)?, reference.gradient(position));
        prop_assert!(agrees(&got, expected.as_ref()), "leaf {position}: {got:?}, {expected:?}");
    }
    Ok(())
}

fn twice<E: Lab>(program: &Program) -> Verdict {
    let run = Run::<E>::new(program)?;
    let first_calls = calls(&run, BackwardOptions::new().retain_graph())?;
    let leaves = &run.variables[..program.leaves.len()];
    let first = leaves.iter().map(leaf_grad).collect::<Result<Vec<_>, _>>()?;
    let second_calls = calls(&run, BackwardOptions::new().retain_graph())?;
    for (one, two) in first_calls.iter().zip(&second_calls) {
        prop_assert!(one.received.iter().zip(&two.received).all(|(a, b)| identical(a, b)), "{one:?} {two:?}");
    }
    prop_assert_eq!(first_calls.len(), second_calls.len());
    for ((leaf, first), declared) in leaves.iter().zip(first).zip(&program.leaves) {
        let doubled = first.and_then(|(dtype, values)| {
            let grad = Grad { dtype, values, certain: true };
            let grad_dtype = match declared.tracked? {
                LeafGrad::Default => GradDType::Exactly(declared.dtype),
                LeafGrad::Declared(grad_dtype) => grad_dtype,
            };
            combine(vec![grad.clone(), grad], grad_dtype)
        });
        prop_assert!(agrees(&leaf_grad(leaf)?, doubled.as_ref()), "{leaf:?} {doubled:?}");
    }
    Ok(())
}

fn create_graph<E: Lab>(program: &Program) -> Verdict {
    let (plain, recorded) = (Run::<E>::new(program)?, Run::<E>::new(program)?);
    let plain_calls = calls(&plain, BackwardOptions::new())?;
    let recorded_calls = calls(&recorded, BackwardOptions::new().create_graph())?;
    for (a, b) in plain_calls.iter().zip(&recorded_calls) {
        prop_assert!(a.received.iter().zip(&b.received).all(|(a, b)| identical(a, b)), "{a:?} {b:?}");
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
    let (certain, all) = (Cell::new(0), Cell::new(0));
    crate::check(3, 2500, program(), |program| {
        let reference = Reference::new(&program);
        for grad in (0..program.leaves.len()).filter_map(|leaf| reference.gradient(leaf)) {
            all.set(all.get() + 1);
            certain.set(certain.get() + usize::from(grad.certain));
        }
        Ok(())
    });
    let (certain, all) = (certain.get(), all.get());
    assert!(all > 2500 && certain * 4 > all * 3, "{certain} of {all} leaf gradients");
}
