//! Gradients asked for by `grad`, also of tensors in the middle.

use gradpact::{BackwardOptions, Error, grad};
use gradpact_tests::lab::{Lab, Run, seen};
use gradpact_tests::program::{Pick, Program};
use gradpact_tests::reference::{Reference, Tensor};
use proptest::{prop_assert, prop_assert_eq};

use crate::strategy::program_with_picks;
use crate::{Verdict, agrees, picked, same_log};

super::on_every_engine! {
    gradients_of_any_tensor_are_those_of_the_contract(11, 1200, program_with_picks()) => captured;
    an_input_that_is_not_reached_is_an_error_unless_it_may_be(12, 700, program_with_picks()) => unreached;
}

fn captured<E: Lab>((program, picks): &(Program, Vec<Pick>)) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let targets = picked(&reference, picks);
    let inputs: Vec<_> = targets.iter().map(|&target| &run.variables[target]).collect();
    let got = grad(&run.roots(), &inputs, BackwardOptions::new().allow_unused())?;
    prop_assert_eq!(got.len(), targets.len());
    let asked: Vec<_> = targets.iter().map(|&target| reference.variable(target)).collect();
    let outcome = reference.asked(&asked);
    same_log(&run.take_log(), &outcome.log)?;
    for (got, &target) in got.iter().zip(&targets) {
        let expected = outcome.gradient(reference.variable(target)).map(|grad| reference.tensor(grad));
        let got = seen(got.as_ref())?;
        prop_assert!(agrees(&got, expected), "variable {target}: {got:?}, {expected:?}");
    }
    for variable in &run.variables {
        prop_assert!(variable.grad().is_none(), "`grad` leaves the leaves alone");
    }
    Ok(())
}

fn unreached<E: Lab>((program, picks): &(Program, Vec<Pick>)) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let targets = picked(&reference, picks);
    let inputs: Vec<_> = targets.iter().map(|&target| &run.variables[target]).collect();
    let asked: Vec<_> = targets.iter().map(|&target| reference.variable(target)).collect();
    let outcome = reference.asked(&asked);
    let found = |&tensor: &usize| outcome.gradient(tensor).map(|grad| reference.tensor(grad).clone());
    let expected: Vec<Option<Tensor>> = asked.iter().map(found).collect();
    let strict = grad(&run.roots(), &inputs, BackwardOptions::new().retain_graph());
    match (strict, expected.iter().position(Option::is_none)) {
        (Ok(got), None) => prop_assert!(got.iter().all(Option::is_some)),
        (Err(Error::Unreachable { position, .. }), Some(_)) => prop_assert!(expected[position].is_none()),
        (got, expected) => prop_assert!(false, "{got:?} where {expected:?} is the first that is not reached"),
    }
    let zeros = grad(&run.roots(), &inputs, BackwardOptions::new().materialize_grads())?;
    for ((got, expected), &tensor) in zeros.iter().zip(expected).zip(&asked) {
        let dtype = reference.tensor(tensor).zero_dtype();
        let expected = expected.unwrap_or_else(|| {
            let zero = reference.constant(dtype, &vec![0.0; program.length]);
            reference.tensor(zero).clone()
        });
        let got = seen(got.as_ref())?;
        prop_assert!(agrees(&got, Some(&expected)), "{got:?}, {expected:?}");
    }
    Ok(())
}
