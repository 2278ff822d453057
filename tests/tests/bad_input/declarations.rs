//! Mistakes in what a forward declares. They are found by `apply`, recorded or not, and whatever the forward makes of them.

use gradpact::GradDType::{Any, Exactly};
use gradpact::{Context, DType, DynTensor, Error, GradDType, Policy};
use gradpact_tests::toy::{Toy, ToyArray, ToyTensor, tensor};

use crate::{Probe, leaf, says, still_works};

/// Applies an identity that declares by `declare`, to a tracked and to an untracked tensor; both must fail alike.
fn refused(declare: impl Fn(&mut Context<Toy>) + Clone + Send + Sync + 'static) -> Error {
    let probe = || {
        let declare = declare.clone();
        Probe::identity().forward(move |ctx, inputs| {
            declare(ctx);
            Ok(inputs.get(0)?.clone().into())
        })
    };
    let x = leaf(&[1.0]);
    let recorded = probe().on(&[&x]).unwrap_err();
    let unrecorded = probe().on(&[&x.detach()]).unwrap_err();
    assert_eq!(recorded.to_string(), unrecorded.to_string());
    still_works(&x);
    recorded
}

#[test]
fn another_number_of_declarations_than_outputs_is_an_error_with_both_numbers() {
    for declared in [vec![], vec![Exactly(DType::F32), Any]] {
        let count = declared.len();
        let error = refused(move |ctx| ctx.set_output_grad_dtype(&declared).unwrap());
        assert!(matches!(error, Error::DeclarationCount { declared, outputs: 1, .. } if declared == count));
        says(&error, &["set_output_grad_dtype of `Probe`", &format!("{count} declarations for 1 outputs")]);
    }
}

#[test]
fn declaring_twice_is_an_error_even_if_the_forward_ignores_it() {
    let error = refused(|ctx| {
        ctx.set_output_grad_dtype(&[Any]).unwrap();
        let told = ctx.set_output_grad_dtype(&[Any]).unwrap_err();
        says(&told, &["`set_output_grad_dtype` was called twice in forward of `Probe`"]);
    });
    assert!(matches!(error, Error::CalledTwice { call: "set_output_grad_dtype", .. }));
    says(&error, &["`set_output_grad_dtype` was called twice in forward of `Probe`"]);
}

#[test]
fn declaring_an_integer_or_bool_gradient_is_an_error_even_if_the_forward_ignores_it() {
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        let error = refused(move |ctx| {
            let told = ctx.set_output_grad_dtype(&[Exactly(dtype)]).unwrap_err();
            assert!(matches!(told, Error::DeclaredNotFloat { .. }));
        });
        assert!(matches!(&error, Error::DeclaredNotFloat { got, .. } if *got == dtype));
        says(&error, &["output 0 of `Probe` declares gradients of dtype", dtype.as_str(), "floating-point"]);
    }
}

#[test]
fn the_output_that_declares_an_integer_gradient_is_named_by_its_position() {
    let x = leaf(&[1.0]);
    let probe = Probe::identity().forward(|ctx, inputs| {
        ctx.set_output_grad_dtype(&[Any, Exactly(DType::F32), Exactly(DType::I64)])?;
        let x = inputs.get(0)?;
        Ok([x.clone(), x.clone(), x.clone()].into())
    });
    says(&probe.on(&[&x]).unwrap_err(), &["output 2 of `Probe`", "i64"]);
    still_works(&x);
}

#[test]
fn marking_an_output_that_does_not_exist_is_an_error_with_its_position() {
    let error = refused(|ctx| ctx.mark_non_differentiable(&[0, 3]));
    assert!(matches!(error, Error::NoSuchOutput { call: "mark_non_differentiable", outputs: 1, .. }));
    says(&error, &["`mark_non_differentiable`", "output 3 of `Probe`", "1 outputs"]);
}

#[test]
fn a_gradient_dtype_for_an_output_marked_non_differentiable_is_an_error() {
    let error = refused(|ctx| {
        ctx.mark_non_differentiable(&[0]);
        ctx.set_output_grad_dtype(&[Exactly(DType::F32)]).unwrap();
    });
    says(&error, &["output 0 of `Probe`", "non-differentiable"]);
}

#[test]
fn saving_twice_is_an_error() {
    let error = refused(|ctx| {
        ctx.save_for_backward(&tensor(DType::F32, &[1.0]));
        ctx.save_for_backward(&tensor(DType::F32, &[1.0]));
    });
    says(&error, &["`save_for_backward` was called twice in forward of `Probe`"]);
}

fn seed(dtype: DType) -> ToyTensor {
    tensor(dtype, &[1.0])
}

#[test]
fn under_the_strict_policy_another_dtype_is_an_error_with_both_dtypes_before_backward_runs() {
    let strict = |declared: Option<GradDType>| {
        Probe::identity().backward(|_, _| panic!("must not run")).forward(move |ctx, inputs| {
            ctx.set_policy(Policy::Strict);
            if let Some(declared) = declared {
                ctx.set_output_grad_dtype(&[declared])?;
            }
            Ok(inputs.get(0)?.clone().into())
        })
    };
    let x = leaf(&[1.0]);
    for declared in [None, Some(Exactly(DType::F32))] {
        let y = strict(declared).on(&[&x]).unwrap();
        let error = y.backward_with(&seed(DType::F16), gradpact::BackwardOptions::new()).unwrap_err();
        says(&error, &["the seed gradient", "wrong dtype for output 0 of `Probe`", "expected f32, got f16"]);
        // Sent by a Function, it is that Function's gradient that is wrong.
        let sender = Probe::identity().named("Sender").backward(|_, _| Ok(seed(DType::F64).into()));
        let error = sender.on(&[&y]).unwrap().backward().unwrap_err();
        says(&error, &["returned for input 0 of `Sender`", "output 0 of `Probe`", "expected f32, got f64"]);
        still_works(&x);
    }
}

#[test]
fn an_integer_output_has_no_gradient_unless_a_floating_one_is_declared() {
    let rounded = |declared: Option<GradDType>| {
        Probe::identity().forward(move |ctx, inputs| {
            if let Some(declared) = declared {
                ctx.set_output_grad_dtype(&[declared])?;
            }
            Ok(inputs.get(0)?.cast(DType::I8)?.into())
        })
    };
    let x = leaf(&[11.5]);
    for declared in [None, Some(Any)] {
        let y = rounded(declared).on(&[&x]).unwrap();
        assert_eq!(y.grad_dtype(), None);
        says(&y.backward().unwrap_err(), &["output 0 of `Probe` is not differentiable"]);
    }
    let y = rounded(Some(Exactly(DType::F32))).on(&[&x]).unwrap();
    y.backward_with(&tensor(DType::F64, &[1232.0]), gradpact::BackwardOptions::new()).unwrap();
    assert_eq!(crate::values(&x.grad().unwrap()), [1232.0]);
    let x = DynTensor::<Toy>::from_array(ToyArray::new(DType::I8, [1], [1.0]));
    says(&x.requiring_grad().unwrap_err(), &["floating-point", "i8"]);
}
