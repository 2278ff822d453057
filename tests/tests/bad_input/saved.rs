//! Saved tensors: freed, missing, of another dtype, or computed on the way.

use gradpact::autograd::DynTensor;
use gradpact::prelude::*;
use gradpact::{Value, grad};
use gradpact_tests::toy::{Toy, mul, tensor};

use crate::{Probe, leaf, says, values};

#[test]
fn a_second_backward_without_retain_graph_is_an_error_that_names_the_function_and_the_remedy() {
    let x = leaf(&[3.0]);
    let y = mul(&x, &x).unwrap();
    y.backward().unwrap();
    let error = y.backward().unwrap_err();
    assert!(matches!(error.root(), Error::SavedFreed(function) if function == "ToyMul"));
    says(&error, &["saved tensors of `ToyMul` were freed by an earlier backward", "retain_graph"]);
    assert_eq!(values(&x.grad().unwrap()), [6.0], "the first gradient is still there");
    let again = mul(&x, &x).unwrap();
    again.backward().unwrap();
    assert_eq!(values(&x.grad().unwrap()), [12.0]);
}

#[test]
fn a_function_that_saved_nothing_can_run_backward_again() {
    let x = leaf(&[3.0]);
    let y = Probe::identity().on(&[&x]).unwrap();
    y.backward().unwrap();
    y.backward().unwrap();
    assert_eq!(values(&x.grad().unwrap()), [2.0]);
}

/// What a first backward does before a second one succeeds.
#[derive(Clone, Copy)]
enum First {
    Fails,
    Panics,
}

/// A Function that saves its input, or with `output` its output, and whose backward succeeds the second time.
fn succeeds_the_second_time(first: First, output: bool) -> Probe {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    Probe::identity()
        .forward(move |ctx, inputs| {
            let x = inputs.get(0)?;
            let y = DynTensor::from_array(x.array().clone());
            ctx.save_for_backward(if output { &y } else { x });
            Ok(y.into())
        })
        .backward(move |ctx, grads| {
            assert_eq!(values(ctx.saved_tensor(0)?), [3.0]);
            match (calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed), first) {
                (0, First::Fails) => Err(Error::custom("not yet")),
                (0, First::Panics) => panic!("not yet"),
                _ => Ok(grads),
            }
        })
}

#[test]
fn a_backward_that_failed_or_panicked_has_not_freed_the_tensors_of_its_function() {
    for first in [First::Fails, First::Panics] {
        for saves_output in [false, true] {
            let x = leaf(&[3.0]);
            let y = succeeds_the_second_time(first, saves_output).on(&[&x]).unwrap();
            says(&y.backward().unwrap_err(), &["backward of `Probe`", "not yet"]);
            assert!(x.grad().is_none());
            y.backward().unwrap();
            assert_eq!(values(&x.grad().unwrap()), [1.0]);
            says(&y.backward().unwrap_err(), &["saved tensors of `Probe` were freed"]);
        }
    }
}

#[test]
fn a_saved_tensor_that_does_not_exist_is_an_error_with_its_position() {
    let x = leaf(&[3.0]);
    let probe = Probe::identity().backward(|ctx, _| {
        assert!(ctx.stored::<u8>().is_none());
        Ok(ctx.saved_tensor(2)?.clone().into())
    });
    let error = probe.on(&[&x]).unwrap().backward().unwrap_err();
    says(
        &error,
        &["in backward of `Probe`", "saved tensor 2 of `Probe`", "expected a tensor, got only 0 saved"],
    );
}

#[test]
fn saved_tensors_of_another_number_or_dtype_than_asked_for_are_an_error_with_both() {
    let x = leaf(&[3.0]);
    let saving = || {
        Probe::identity().forward(|ctx, inputs| {
            ctx.save_for_backward((inputs.get(0)?, &inputs.get(0)?.cast(DType::F16)?));
            Ok(inputs.get(0)?.clone().into())
        })
    };
    let one = saving().backward(|ctx, _| ctx.saved::<Value<f32, Toy>>().map(|x| x.into_dyn().into()));
    says(
        &one.on(&[&x]).unwrap().backward().unwrap_err(),
        &["backward of `Probe` asks for 1 saved tensor", "saved 2"],
    );
    let other = saving().backward(|ctx, _| {
        let (x, _): (Value<f32, Toy>, Value<bf16, Toy>) = ctx.saved()?;
        Ok(x.into_dyn().into())
    });
    says(
        &other.on(&[&x]).unwrap().backward().unwrap_err(),
        &["saved tensor 1 of `Probe`: expected a bf16 tensor, got f16"],
    );
}

/// x⁴, saving x² on the way.
fn fourth(x: &DynTensor<Toy>) -> DynTensor<Toy> {
    let probe = Probe::identity()
        .named("Fourth")
        .forward(|ctx, inputs| {
            let x = inputs.get(0)?;
            let square = mul(x, x)?;
            ctx.save_for_backward((x, &square));
            Ok(mul(&square, &square)?.into())
        })
        .backward(|ctx, grads| {
            let (x, square) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
            let four = tensor(DType::F32, &[4.0]);
            let grad = grads[0].as_ref().ok_or_else(|| Error::custom("materialized"))?;
            Ok(mul(grad, &mul(&four, &mul(x, square)?)?)?.into())
        });
    probe.on(&[x]).unwrap()
}

fn first_derivative(y: &DynTensor<Toy>, x: &DynTensor<Toy>) -> DynTensor<Toy> {
    grad(&[(y, None)], &[x], BackwardOptions::new().create_graph()).unwrap()[0].clone().unwrap()
}

#[test]
fn a_second_derivative_through_a_saved_intermediate_is_an_error_not_a_number() {
    let x = leaf(&[3.0]);
    let first = first_derivative(&fourth(&x), &x);
    assert_eq!(values(&first), [108.0], "the first derivative is known");
    let error = grad(&[(&first, None)], &[&x], BackwardOptions::new().retain_graph()).unwrap_err();
    says(&error, &["`Fourth` saved a value that is neither its input nor its output"]);
    says(&first.backward().unwrap_err(), &["`Fourth` saved a value"]);
}

#[test]
fn a_derivative_that_a_saved_intermediate_does_not_matter_to_is_still_a_number() {
    let (x, w) = (leaf(&[3.0]), leaf(&[2.0]));
    let first = first_derivative(&mul(&fourth(&x), &w).unwrap(), &x);
    assert_eq!(values(&first), [216.0]);
    let mixed = grad(&[(&first, None)], &[&w], BackwardOptions::new()).unwrap();
    assert_eq!(values(mixed[0].as_ref().unwrap()), [108.0]);
}

#[test]
fn a_saved_constant_made_in_forward_is_no_intermediate_if_it_is_detached() {
    let x = leaf(&[3.0]);
    let probe = Probe::identity()
        .forward(|ctx, inputs| {
            let x = inputs.get(0)?;
            let two: DynTensor<Toy> = tensor(DType::F32, &[2.0]);
            ctx.save_for_backward((x, &two.detach()));
            Ok(mul(x, x)?.into())
        })
        .backward(|ctx, grads| {
            let twice = mul(ctx.saved_tensor(0)?, ctx.saved_tensor(1)?)?;
            Ok(mul(&twice, grads[0].as_ref().ok_or_else(|| Error::custom("materialized"))?)?.into())
        });
    let y = probe.on(&[&x]).unwrap();
    let first = grad(&[(&y, None)], &[&x], BackwardOptions::new().create_graph()).unwrap();
    let second = grad(&[(first[0].as_ref().unwrap(), None)], &[&x], BackwardOptions::new()).unwrap();
    assert_eq!(values(second[0].as_ref().unwrap()), [2.0]);
}
