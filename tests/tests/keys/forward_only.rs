//! `backward = none`: Functions without a derivative.

use gradpact::function::Graph;
use gradpact::prelude::*;
use gradpact_tests::toy::{Toy, tensor};

use crate::{grad, leaf, says};

/// One where its input is positive, else zero.
#[autograd_function(out = f16, backward = none)]
#[derive(Clone)]
struct Step;

impl<E: Graph> ForwardOnly<E> for Step {
    type Inputs = Tensor<f32, f32, E>;

    fn forward(&self, x: Value<f32, E>) -> Result<Value<f16, E>> {
        // The engine knows nothing but conversions: any float but zero is true.
        x.cast::<bool>()?.cast()
    }
}

#[test]
fn its_output_is_not_differentiable_by_type_and_in_the_graph() {
    let x = leaf(&[0.0, 2.0]);
    let y: Tensor<f16, NoGrad> = Step.apply(&x).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0, 1.0].map(f16::from_f32));
    assert!(!y.requires_grad());
    let error = y.sum().unwrap().backward().unwrap_err();
    says(&error, &["output 0 of `Step` is not differentiable"]);
    let error = gradpact::grad(&[(y.as_dyn(), None)], &[x.as_dyn()], BackwardOptions::new()).unwrap_err();
    says(&error, &["`Step`"]);
}

#[test]
fn it_is_a_constant_to_what_is_computed_from_it() {
    let x = leaf(&[0.0, 2.0, -3.0]);
    // x · step(x), by the product rule: 1 · step(x) + x · 0.
    let y = x.mul(&Step.apply(&x).unwrap().cast::<f32>().unwrap()).unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(grad(&x), [0.0, 1.0, 1.0]);
}

#[test]
fn it_is_a_function_of_the_dynamic_layer_and_of_every_engine() {
    let x = leaf(&[4.0]);
    let y = apply(Step, &[x.as_dyn()]).unwrap().into_iter().next().unwrap();
    says(&y.backward().unwrap_err(), &["output 0 of `Step` is not differentiable"]);
    let x: Tensor<f32, f32, Toy> = tensor(DType::F32, &[4.0]).requiring_grad().unwrap().typed().unwrap();
    let y: Tensor<f16, NoGrad, Toy> = Step.apply(&x).unwrap();
    assert_eq!(y.as_dyn().array().values(), [1.0]);
    says(&y.as_dyn().backward().unwrap_err(), &["output 0 of `Step` is not differentiable"]);
}

/// Its input, and which elements are true; a bias may be added.
#[autograd_function(out = (T, bool, i64), backward = none)]
struct Split<T: Element> {
    stored_in: std::marker::PhantomData<T>,
}

impl<T: Float> ForwardOnly for Split<T> {
    type Inputs = (Tensor<f32>, Option<Tensor<f32>>);

    fn forward(
        &self,
        (x, bias): (Value<f32>, Option<Value<f32>>),
    ) -> Result<(Value<T>, Value<bool>, Value<i64>)> {
        let x = if let Some(bias) = bias { x.add(&bias)? } else { x };
        Ok((x.cast()?, x.cast()?, x.cast()?))
    }
}

#[test]
fn several_outputs_take_their_types_from_the_attribute_and_inputs_may_be_missing() {
    let (x, bias) = (leaf(&[0.5, 2.0]), leaf(&[-0.5, 1.0]));
    let split = || Split::<f64> { stored_in: std::marker::PhantomData };
    let (t, b, i): (Tensor<f64, NoGrad>, Tensor<bool>, Tensor<i64>) =
        split().apply((&x, Some(&bias))).unwrap();
    assert_eq!(t.to_vec().unwrap(), [0.0, 3.0]);
    assert_eq!((b.to_vec().unwrap(), i.to_vec().unwrap()), (vec![false, true], vec![0, 3]));
    for (position, output) in [t.as_dyn(), b.as_dyn(), i.as_dyn()].into_iter().enumerate() {
        let place = format!("output {position} of `Split` is not differentiable");
        says(&output.backward().unwrap_err(), &[&place]);
    }
    let (t, ..) = split().apply((&x, None)).unwrap();
    assert_eq!(t.to_vec().unwrap(), [0.5, 2.0]);
}

/// Fails in a way of its own.
#[autograd_function(out = f32, backward = none)]
struct Failing {
    panics: bool,
}

impl ForwardOnly for Failing {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: Value<f32>) -> Result<Value<f32>> {
        assert!(!self.panics, "out of luck");
        Err(Error::custom("out of bounds"))
    }
}

#[test]
fn errors_and_panics_of_its_forward_name_it() {
    let x = leaf(&[1.0]);
    says(&Failing { panics: false }.apply(&x).unwrap_err(), &["in forward of `Failing`", "out of bounds"]);
    says(&Failing { panics: true }.apply(&x).unwrap_err(), &["forward of `Failing` panicked", "out of luck"]);
}

#[test]
fn a_backward_asked_for_by_hand_is_an_error_that_names_it() {
    let y = apply(Asking, &[leaf(&[1.0]).as_dyn()]).unwrap();
    says(&y[0].backward().unwrap_err(), &["in backward of `Asking`", "`Step` has no backward"]);
}

/// Passes its input on, and asks `Step` for the backward.
struct Asking;

impl Function for Asking {
    fn name(&self) -> &'static str {
        "Asking"
    }

    fn forward(&self, _: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        Ok(inputs.get(0)?.clone().into())
    }

    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
        Function::backward(&Step, ctx, grads)
    }
}
