//! Errors and panics of the user's own forward and backward.

use std::fmt;

use gradpact::autograd::{Gradients, Outputs};
use gradpact::error::Phase;
use gradpact::{BackwardOptions, DType, Error, Function, Inputs};
use gradpact_tests::toy::{Toy, ToyTensor, mul, tensor};

use crate::{Probe, leaf, says, still_works, values};

/// An error of the user's own.
#[derive(Debug, PartialEq)]
struct OutOfLuck(u8);

impl fmt::Display for OutOfLuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of luck {}", self.0)
    }
}

impl std::error::Error for OutOfLuck {}

#[test]
fn an_error_in_forward_names_the_function_and_gives_the_users_own_error_back() {
    let x = leaf(&[1.0]);
    let error = Probe::identity().forward(|_, _| Err(Error::custom(OutOfLuck(7)))).on(&[&x]).unwrap_err();
    assert_eq!(error.to_string(), "in forward of `Probe`: out of luck 7");
    assert!(matches!(&error, Error::InFunction { phase: Phase::Forward, .. }));
    assert_eq!(error.downcast_ref::<OutOfLuck>(), Some(&OutOfLuck(7)));
    assert!(error.downcast_ref::<fmt::Error>().is_none());
    still_works(&x);
}

#[test]
fn an_error_in_backward_names_the_function_and_gives_the_users_own_error_back() {
    let x = leaf(&[1.0]);
    let y = Probe::identity().backward(|_, _| Err(Error::custom(OutOfLuck(3)))).on(&[&x]).unwrap();
    let z = mul(&y, &y).unwrap();
    let error = z.backward().unwrap_err();
    assert_eq!(error.to_string(), "in backward of `Probe`: out of luck 3");
    assert!(matches!(&error, Error::InFunction { phase: Phase::Backward, .. }));
    assert_eq!(error.downcast_ref::<OutOfLuck>(), Some(&OutOfLuck(3)));
    still_works(&x);
}

#[test]
fn the_chain_of_sources_ends_at_the_users_own_error() {
    let error =
        Probe::identity().forward(|_, _| Err(Error::custom(OutOfLuck(7)))).on(&[&leaf(&[1.0])]).unwrap_err();
    let mut last: &dyn std::error::Error = &error;
    while let Some(source) = last.source() {
        last = source;
    }
    assert_eq!(last.downcast_ref::<OutOfLuck>(), Some(&OutOfLuck(7)));
}

#[test]
fn an_error_of_an_operation_inside_a_function_names_both() {
    let (x, wide) = (leaf(&[1.0]), tensor(DType::F32, &[1.0, 2.0]));
    let other = wide.clone();
    let forward = Probe::identity().forward(move |_, inputs| Ok(mul(inputs.get(0)?, &other)?.into()));
    let error = forward.on(&[&x]).unwrap_err();
    says(&error, &["in forward of `Probe`", "`zip`", "[1]", "[2]"]);
    let backward =
        Probe::identity().backward(move |_, grads| Ok(mul(grads[0].as_ref().unwrap(), &wide)?.into()));
    let error = backward.on(&[&x]).unwrap().backward().unwrap_err();
    says(&error, &["in backward of `Probe`", "`zip`", "[1]", "[2]"]);
    assert!(matches!(error.root(), Error::Shape { .. }));
    still_works(&x);
}

#[test]
fn a_panic_inside_a_function_inside_a_function_names_both() {
    let x = leaf(&[1.0]);
    let outer = Probe::identity().named("Outer").forward(|_, inputs| {
        let inner = Probe::identity().named("Inner").forward(|_, _| panic!("too deep"));
        Ok(inner.on(&[inputs.get(0)?])?.into())
    });
    let error = outer.on(&[&x]).unwrap_err();
    assert_eq!(error.to_string(), "in forward of `Outer`: forward of `Inner` panicked: too deep");
    still_works(&x);
}

#[test]
fn an_input_that_was_not_given_is_an_error_with_its_position() {
    let x = leaf(&[1.0]);
    let error =
        Probe::identity().forward(|_, inputs| Ok(inputs.get(4)?.clone().into())).on(&[&x]).unwrap_err();
    says(&error, &["in forward of `Probe`", "input 4 of `Probe` was not given"]);
}

/// Has neither inputs nor outputs.
struct Nothing;

impl Function<Toy> for Nothing {
    fn name(&self) -> &'static str {
        "Nothing"
    }

    fn forward(
        &self,
        _: &mut gradpact::Context<Toy>,
        inputs: &Inputs<'_, Toy>,
    ) -> gradpact::Result<Outputs<Toy>> {
        assert!(inputs.is_empty());
        Ok(Outputs::new())
    }

    fn backward(&self, _: &gradpact::Context<Toy>, _: Gradients<Toy>) -> gradpact::Result<Gradients<Toy>> {
        Ok(Gradients::new())
    }
}

#[test]
fn a_function_without_inputs_or_outputs_is_allowed() {
    assert!(gradpact::apply(Nothing, &[]).unwrap().is_empty());
    let made = Probe::identity().forward(|_, _| Ok(tensor(DType::F32, &[1.0]).into())).on(&[]).unwrap();
    assert!(!made.requires_grad());
    says(&made.backward().unwrap_err(), &["does not require a gradient"]);
}

#[test]
fn backward_from_no_root_and_gradients_of_no_input_are_nothing_and_no_error() {
    gradpact::backward::<Toy>(&[], BackwardOptions::new()).unwrap();
    let x = leaf(&[1.0]);
    let y = mul(&x, &x).unwrap();
    assert!(gradpact::grad(&[(&y, None)], &[], BackwardOptions::new()).unwrap().is_empty());
    assert!(x.grad().is_none());
}

#[test]
fn the_same_root_twice_counts_twice_and_the_same_input_twice_is_answered_twice() {
    let x = leaf(&[3.0]);
    let y: ToyTensor = mul(&x, &x).unwrap();
    let found = gradpact::grad(&[(&y, None), (&y, None)], &[&x, &x], BackwardOptions::new()).unwrap();
    let found: Vec<_> = found.iter().map(|grad| values(grad.as_ref().unwrap())).collect();
    assert_eq!(found, [[12.0], [12.0]]);
}
