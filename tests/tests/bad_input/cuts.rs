//! Graphs that are cut: never a quiet `None`, always where.

use gradpact::{BackwardOptions, DType, Error, grad, no_grad};
use gradpact_tests::toy::{ToyTensor, add, mul};

use crate::{Probe, leaf, says, values};

/// A Function whose only output has no gradient.
fn constant(x: &ToyTensor) -> ToyTensor {
    let probe = Probe::identity().named("Constant").forward(|ctx, inputs| {
        ctx.mark_non_differentiable(&[0]);
        Ok(inputs.get(0)?.clone().into())
    });
    probe.on(&[x]).unwrap()
}

/// Every way to cut a graph off from `x`, with the words that its errors say.
fn cuts(x: &ToyTensor) -> [(ToyTensor, &'static str); 5] {
    [
        (constant(x), "output 0 of `Constant` is not differentiable"),
        (x.cast(DType::I32).unwrap(), "output 0 of `Cast` is not differentiable"),
        (x.detach(), "`detach` was called"),
        (no_grad(|| mul(x, x)).unwrap(), "it was computed under `no_grad`"),
        (no_grad(|| x.cast(DType::F16)).unwrap(), "it was computed under `no_grad`"),
    ]
}

#[test]
fn backward_from_behind_a_cut_names_the_cut() {
    let x = leaf(&[2.0]);
    for (cut, why) in cuts(&x) {
        assert!(!cut.requires_grad());
        says(&cut.backward().unwrap_err(), &["nothing to differentiate", "cut off from its graph", why]);
    }
}

#[test]
fn the_reason_is_still_known_many_operations_behind_the_cut() {
    let x = leaf(&[2.0]);
    for (cut, why) in cuts(&x) {
        let one = add(&cut, &cut).unwrap();
        let far = mul(&one, &one).unwrap().cast(DType::F64).unwrap();
        says(&far.backward().unwrap_err(), &[why]);
    }
}

#[test]
fn a_gradient_behind_a_cut_is_an_error_that_names_it_unless_it_may_be_unused() {
    let (x, w) = (leaf(&[2.0]), leaf(&[5.0]));
    for (cut, why) in cuts(&x) {
        let loss = mul(&w, &cut).unwrap();
        let ask = |options| grad(&[(&loss, None)], &[&w, &x], options);
        let error = ask(BackwardOptions::new()).unwrap_err();
        assert!(matches!(error, Error::Unreachable { position: 1, .. }));
        says(&error, &["input 1 of `grad` does not influence the outputs", "cut", why, "`allow_unused`"]);
        let found = ask(BackwardOptions::new().allow_unused()).unwrap();
        assert_eq!(values(found[0].as_ref().unwrap()), values(&cut));
        assert!(found[1].is_none());
    }
}

#[test]
fn where_nothing_was_cut_the_error_does_not_say_so() {
    let (x, w) = (leaf(&[2.0]), leaf(&[5.0]));
    let error = grad(&[(&mul(&w, &w).unwrap(), None)], &[&x], BackwardOptions::new()).unwrap_err();
    assert!(!error.to_string().contains("cut"), "{error}");
}

#[test]
fn a_function_that_returns_no_gradient_on_the_way_is_named_where_that_matters() {
    let x = leaf(&[2.0]);
    let silent = Probe::identity().named("Silent").backward(|_, _| Ok(None.into()));
    let y = silent.on(&[&x]).unwrap();
    let error = grad(&[(&y, None)], &[&x], BackwardOptions::new()).unwrap_err();
    says(&error, &["input 0 of `grad`", "`Silent`"]);
}

#[test]
fn what_leaks_out_of_a_forward_says_where_it_was_made() {
    let x = leaf(&[2.0]);
    let leaked = std::sync::Arc::new(std::sync::Mutex::new(None));
    let slot = std::sync::Arc::clone(&leaked);
    let probe = Probe::identity().forward(move |_, inputs| {
        let x = inputs.get(0)?;
        *slot.lock().unwrap() = Some(mul(x, x)?);
        Ok(x.clone().into())
    });
    probe.on(&[&x]).unwrap();
    let leaked: ToyTensor = leaked.lock().unwrap().take().unwrap();
    says(&leaked.backward().unwrap_err(), &["computed inside the forward of a Function"]);
}
