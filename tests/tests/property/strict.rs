//! The strict policy: refused is exactly what would be converted to a dtype that nobody declared.

use gradpact::{BackwardOptions, DynTensor, Error, Result, backward, grad};
use gradpact_tests::lab::{Lab, Run};
use gradpact_tests::program::{Pick, Program};
use gradpact_tests::reference::{Conversion, Reference, Work};
use proptest::prop_assert_eq;
use proptest::test_runner::TestCaseError;

use crate::strategy::program_with_picks;
use crate::{Verdict, leaf_grad, picked};

super::on_every_engine! {
    the_strict_policy_refuses_the_first_conversion_to_an_undeclared_dtype_by_name(71, 1000, program_with_picks())
        => all;
    of_gradients_that_are_asked_for_only_those_are_refused_that_would_be_sent(72, 700, program_with_picks())
        => asked;
}

/// The name of what a node does, on an engine.
fn name<E: Lab>(work: &Work) -> &'static str {
    match work {
        Work::Custom(_, label) => label.name(),
        Work::Add => E::OPERATIONS[0],
        Work::Mul => E::OPERATIONS[1],
        Work::Cast => "Cast",
        Work::Redeclare => "WithGradDType",
        Work::Meet => "Accumulate",
    }
}

/// Sender, receiver, expected, got, as an error tells them.
type Told = (String, String, String, String);

fn expected<E: Lab>(conversion: &Conversion) -> Told {
    let sender = conversion.sender.as_ref().map_or("the seed gradient".to_owned(), |(work, position)| {
        format!("the gradient returned for input {position} of `{}`", name::<E>(work))
    });
    let receiver = conversion.receiver.as_ref().map_or("a leaf".to_owned(), |(work, position)| {
        format!("output {position} of `{}`", name::<E>(work))
    });
    (sender, receiver, conversion.expected.to_string(), conversion.got.to_string())
}

/// Checks that a call ended as the reference says.
fn ended<E: Lab, R>(result: Result<R>, conversions: &[Conversion]) -> Result<Option<R>, TestCaseError> {
    let told = conversions.first().map(expected::<E>);
    match result {
        Ok(result) => {
            prop_assert_eq!(told, None, "not refused");
            Ok(Some(result))
        }
        Err(Error::Gradient(mismatch)) => {
            let (expected, got) =
                mismatch.dtype.map(|(e, g)| (e.to_string(), g.to_string())).unwrap_or_default();
            let sender = mismatch.sender.to_string();
            prop_assert_eq!(Some((sender, mismatch.receiver.clone(), expected, got)), told.clone());
            // Nobody has to read fields: the text says all of it.
            let (sender, receiver, expected, got) = told.unwrap_or_default();
            let text = format!("{sender} has the wrong dtype for {receiver}: expected {expected}, got {got}");
            prop_assert_eq!(&mismatch.to_string()[..text.len()], text);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn all<E: Lab>((program, _): &(Program, Vec<Pick>)) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let result = backward(&run.roots(), BackwardOptions::new().retain_graph().strict());
    let outcome = reference.backward(false);
    if ended::<E, _>(result, &outcome.conversions)?.is_some() {
        // What is not refused is as without the policy.
        let strict = run.leaves().iter().map(leaf_grad).collect::<Result<Vec<_>, _>>()?;
        run.leaves().iter().for_each(DynTensor::zero_grad);
        backward(&run.roots(), BackwardOptions::new())?;
        let plain = run.leaves().iter().map(leaf_grad).collect::<Result<Vec<_>, _>>()?;
        prop_assert_eq!(format!("{strict:?}"), format!("{plain:?}"));
    }
    Ok(())
}

fn asked<E: Lab>((program, picks): &(Program, Vec<Pick>)) -> Verdict {
    let (mut reference, run) = (Reference::new(program), Run::<E>::new(program)?);
    let targets = picked(&reference, picks);
    let inputs: Vec<_> = targets.iter().map(|&target| &run.variables[target]).collect();
    let result = grad(&run.roots(), &inputs, BackwardOptions::new().allow_unused().strict());
    let ids: Vec<_> = targets.iter().map(|&target| reference.variable(target)).collect();
    let outcome = reference.asked(&ids);
    ended::<E, _>(result, &outcome.conversions).map(drop)
}

#[test]
fn the_reference_refuses_some_programs_and_lets_some_pass() {
    let refused = std::cell::Cell::new([0, 0]);
    crate::check(71, 400, program_with_picks(), |(program, _)| {
        let mut reference = Reference::new(&program);
        if !reference.roots().is_empty() {
            let mut counts = refused.get();
            counts[usize::from(reference.backward(false).conversions.is_empty())] += 1;
            refused.set(counts);
        }
        Ok(())
    });
    let [refused, passed] = refused.get();
    assert!(refused * 10 > passed && passed * 10 > refused, "{refused} refused, {passed} not");
}
