//! What `backward` returns, and what it is started with.

use gradpact::function::apply_optional;
use gradpact::{BackwardOptions, DType, DynTensor, Error, Shape, backward, grad};
use gradpact_tests::toy::{Toy, ToyArray, ToyTensor, mul, tensor};

use crate::{Probe, leaf, says, still_works, values};

fn two_inputs(returned: impl Fn() -> gradpact::Gradients<Toy> + Send + Sync + 'static) -> (ToyTensor, Error) {
    let x = leaf(&[1.0]);
    let y = Probe::identity().backward(move |_, _| Ok(returned())).on(&[&x, &leaf(&[1.0])]).unwrap();
    let error = y.backward().unwrap_err();
    still_works(&x);
    (x, error)
}

fn one() -> ToyTensor {
    tensor(DType::F32, &[1.0])
}

#[test]
fn too_few_or_too_many_gradients_are_an_error_with_both_numbers() {
    let (_, error) = two_inputs(|| one().into());
    says(&error, &["backward of `Probe` returned 1 gradients, expected 2"]);
    let (_, error) = two_inputs(|| [one(), one(), one()].into());
    says(&error, &["backward of `Probe` returned 3 gradients, expected 2"]);
    let (_, error) = two_inputs(|| [Some(one()), None, None, Some(one())].into());
    says(&error, &["backward of `Probe` returned 4 gradients, expected 2"]);
    let (_, error) = two_inputs(gradpact::Gradients::new);
    says(&error, &["backward of `Probe` returned 0 gradients, expected 2"]);
}

#[test]
fn a_gradient_of_another_shape_is_an_error_with_position_and_both_shapes_and_never_summed() {
    for shape in [vec![4, 3], vec![1, 3], vec![1], vec![], vec![0]] {
        let got = Shape::from(shape.clone());
        let x = leaf(&[1.0, 2.0, 3.0]);
        let wrong = ToyArray::new(DType::F32, got.clone(), vec![1.0; got.element_count()]);
        let returned = move || [None, Some(DynTensor::from_array(wrong.clone()))].into();
        let y = Probe::identity().backward(move |_, _| Ok(returned())).on(&[&leaf(&[1.0]), &x]).unwrap();
        let error = y.backward().unwrap_err();
        assert!(matches!(&error, Error::Gradient(mismatch) if mismatch.dtype.is_none()));
        let both = format!("wrong shape for a leaf: expected [3], got {got}");
        says(&error, &["returned for input 1 of `Probe`", &both, "sum_to_shape"]);
        still_works(&x);
    }
}

#[test]
fn where_shape_and_dtype_are_wrong_the_error_says_both() {
    let x = leaf(&[1.0]);
    let y = Probe::identity().named("Receiver").on(&[&x]).unwrap();
    let wrong = || tensor(DType::F16, &[1.0, 2.0]);
    let z = Probe::identity().named("Sender").backward(move |_, _| Ok(wrong().into())).on(&[&y]).unwrap();
    let error = z.backward().unwrap_err();
    says(
        &error,
        &[
            "returned for input 0 of `Sender`",
            "wrong shape and dtype for output 0 of `Receiver`",
            "expected f32 [1], got f16 [2]",
        ],
    );
    still_works(&x);
}

#[test]
fn an_integer_or_bool_gradient_is_an_error_that_names_its_dtype_and_position() {
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        let (_, error) = two_inputs(move || [one(), tensor(dtype, &[1.0])].into());
        assert!(matches!(&error, Error::GradientNotFloat { got, .. } if *got == dtype));
        says(&error, &["returned for input 1 of `Probe`", dtype.as_str(), "floating-point"]);
    }
}

#[test]
fn a_gradient_for_an_input_that_was_not_given_is_an_error_that_names_it() {
    let x = leaf(&[1.0]);
    let probe = Probe::identity().backward(|_, grads| Ok([grads[0].clone(), grads[0].clone()].into()));
    let y = apply_optional(probe, &[Some(&x), None]).unwrap()[0].clone();
    let error = y.backward().unwrap_err();
    assert!(matches!(error, Error::GradientForAbsentInput(_)));
    says(&error, &["input 1 of `Probe`", "not given", "`None`"]);
    still_works(&x);
}

#[test]
fn a_gradient_for_an_input_that_nobody_tracks_is_dropped_unread() {
    let x = leaf(&[1.0]);
    let probe = Probe::identity().backward(|ctx, grads| {
        assert!(ctx.needs_input_grad(0) && !ctx.needs_input_grad(1) && !ctx.needs_input_grad(9));
        Ok([grads[0].clone(), Some(tensor(DType::I8, &[1.0, 2.0]))].into())
    });
    probe.on(&[&x, &one()]).unwrap().backward().unwrap();
    assert_eq!(values(&x.grad().unwrap()), [1.0]);
}

#[test]
fn a_seed_of_another_shape_or_of_no_floating_dtype_is_an_error_before_anything_runs() {
    let x = leaf(&[1.0, 2.0]);
    let y = Probe::identity().backward(|_, _| panic!("must not run")).on(&[&x]).unwrap();
    let options = BackwardOptions::new();
    let error = y.backward_with(&one(), options).unwrap_err();
    says(&error, &["the seed gradient has the wrong shape for output 0 of `Probe`: expected [2], got [1]"]);
    let error = y.backward_with(&tensor(DType::I32, &[1.0, 1.0]), options).unwrap_err();
    says(&error, &["the seed gradient is i32", "floating-point"]);
    // A good seed beside a bad one changes nothing.
    let good = tensor(DType::F32, &[1.0, 1.0]);
    assert!(backward(&[(&y, Some(&good)), (&x, Some(&one()))], options).is_err());
    let error = grad(&[(&y, Some(&good)), (&y, Some(&one()))], &[&x], options).unwrap_err();
    says(&error, &["expected [2], got [1]"]);
    still_works(&x);
}

#[test]
fn only_a_single_element_can_do_without_a_seed() {
    let y = Probe::identity().on(&[&leaf(&[1.0, 2.0])]).unwrap();
    let error = y.backward().unwrap_err();
    says(&error, &["starts at a scalar, got shape [2]", "output 0 of `Probe`", "backward_with"]);
    says(&leaf(&[1.0, 2.0]).backward().unwrap_err(), &["got shape [2] (a leaf)"]);
    says(&leaf(&[]).backward().unwrap_err(), &["got shape [0] (a leaf)"]);
    for shape in [Shape::scalar(), Shape::from([1]), Shape::from([1, 1])] {
        let x = DynTensor::<Toy>::from_array(ToyArray::new(DType::F16, shape.clone(), [3.0]));
        let x = x.requiring_grad().unwrap();
        mul(&x, &x).unwrap().backward().unwrap();
        let grad = x.grad().unwrap();
        assert_eq!((values(&grad), grad.dtype(), grad.shape()), (vec![6.0], DType::F16, &shape));
    }
}

#[test]
fn backward_from_a_tensor_without_a_graph_is_an_error_that_says_why() {
    let x = one();
    says(
        &x.backward().unwrap_err(),
        &["nothing to differentiate", "does not require a gradient", "requiring_grad"],
    );
    let integer = tensor(DType::I32, &[1.0]);
    says(&integer.backward().unwrap_err(), &["nothing to differentiate", "i32", "floating-point"]);
    says(&leaf(&[1.0]).detach().backward().unwrap_err(), &["cut off", "`detach`"]);
}

#[test]
fn a_gradient_with_respect_to_what_cannot_have_one_is_an_error_with_its_position_and_dtype() {
    let x = leaf(&[1.0]);
    let y = mul(&x, &x).unwrap();
    let ask = |input: &ToyTensor| grad(&[(&y, None)], &[&x, input], BackwardOptions::new()).unwrap_err();
    says(&ask(&tensor(DType::I32, &[1.0])), &["input 1 of `grad`", "i32"]);
    says(&ask(&one()), &["input 1 of `grad`", "does not require a gradient"]);
    says(&ask(&x.detach()), &["input 1 of `grad`", "`detach`"]);
    let found = grad(&[(&y, None)], &[&x], BackwardOptions::new()).unwrap();
    assert_eq!(values(found[0].as_ref().unwrap()), [2.0], "the graph was not touched by the failures");
}

#[test]
fn after_an_error_the_leaves_keep_what_had_arrived_and_the_call_can_be_repeated() {
    let (x, z) = (leaf(&[1.0]), leaf(&[1.0]));
    let fails_once = std::sync::atomic::AtomicBool::new(true);
    let probe = Probe::identity().named("Fragile").backward(move |_, grads| {
        if fails_once.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return Ok(tensor(DType::F32, &[1.0, 1.0]).into());
        }
        Ok(grads)
    });
    let early = probe.on(&[&x]).unwrap();
    let late = Probe::identity().on(&[&z]).unwrap();
    let roots = [(&early, None), (&late, None)];
    says(&backward(&roots, BackwardOptions::new()).unwrap_err(), &["`Fragile`"]);
    assert!(x.grad().is_none());
    let before = z.grad().map_or(0.0, |grad| values(&grad)[0]);
    backward(&roots, BackwardOptions::new()).unwrap();
    assert_eq!((values(&x.grad().unwrap()), values(&z.grad().unwrap())), (vec![1.0], vec![before + 1.0]));
}
