//! Breaches of contract that numbers do not show, and that PyTorch's gradcheck lets pass.

use gradpact::prelude::*;
use gradpact::testing::{Gradcheck, GradcheckReport, Violation, gradcheck, gradcheck_fn};

use crate::support::{Custom, Found, of, only};

const F16: Option<GradDType> = Some(GradDType::Exactly(DType::F16));
const F32: Option<GradDType> = Some(GradDType::Exactly(DType::F32));

fn x(dtype: DType) -> DynTensor {
    of(dtype, &[0.5, -1.0, 1.5], [3])
}

fn report(function: Custom, x: &DynTensor) -> GradcheckReport {
    Gradcheck::new().check(function, x).found()
}

/// The violations, as text.
fn violations(function: Custom, x: &DynTensor) -> Vec<String> {
    report(function, x).violations().iter().map(ToString::to_string).collect()
}

#[test]
fn a_gradient_declared_narrower_than_its_output_loses_something_and_is_found() {
    for (out, grad) in [
        (DType::F64, DType::F16),
        (DType::F64, DType::F32),
        (DType::F32, DType::BF16),
        (DType::F16, DType::F8E5M2),
    ] {
        let declared = || {
            Custom::double(out, Some(GradDType::Exactly(grad)), move |grad| grad.cast(out)?.mul_scalar(2.0))
        };
        let found = violations(declared(), &x(out));
        let expected = format!(
            "the gradient of output 0 of `Custom` is kept in {grad}, which cannot hold every value of its {out}"
        );
        assert_eq!(found[0], expected);
        let allowed = Gradcheck::new().allow_narrowing().check(declared(), &x(out)).found();
        assert!(allowed.passed(), "{allowed}");
    }
    // What is lost is in the numbers too: seeds use every bit of the output's dtype.
    let halved = report(
        Custom::double(DType::F64, F16, |grad| grad.cast(DType::F64)?.mul_scalar(2.0)),
        &x(DType::F64),
    );
    assert!(!halved.mismatches().is_empty(), "{halved}");
}

#[test]
fn a_wider_gradient_dtype_is_no_breach() {
    for (out, grad) in [(DType::F16, DType::F32), (DType::BF16, DType::F64), (DType::F8E4M3, DType::F16)] {
        let function = Custom::double(out, Some(GradDType::Exactly(grad)), |grad| {
            grad.cast(DType::F32)?.mul_scalar(2.0)
        });
        gradcheck(function, &x(DType::F32)).unwrap();
    }
    let any = Custom::double(DType::F16, Some(GradDType::Any), |grad| grad.cast(DType::F32)?.mul_scalar(2.0));
    gradcheck(any, &x(DType::F32)).unwrap();
}

#[test]
fn a_backward_that_returns_another_dtype_than_the_inputs_gradient_is_found() {
    for input in [DType::F64, DType::F32, DType::F16] {
        for returned in DType::FLOATS.into_iter().filter(|&returned| returned != input) {
            let function = || Custom::double(input, None, move |grad| grad.mul_scalar(2.0)?.cast(returned));
            let consequence =
                if input.fits_in(returned) { "the engine rounds it" } else { "precision is lost" };
            let expected = format!(
                "backward returned {returned} for input 0 of `Custom`, whose gradient is {input}: {consequence}"
            );
            assert!(violations(function(), &x(input)).contains(&expected), "{expected}");
            if input.fits_in(returned) {
                let allowed = Gradcheck::new().allow_conversions().check(function(), &x(input)).found();
                assert!(allowed.passed(), "{allowed}");
            }
        }
    }
}

#[test]
fn a_leaf_that_keeps_its_gradient_in_a_narrower_dtype_is_found() {
    for (storage, grad) in [(DType::F64, DType::F32), (DType::F64, DType::F16), (DType::F32, DType::F16)] {
        let leaf = x(storage).requiring_grad_in(GradDType::Exactly(grad)).unwrap();
        let error = gradcheck_fn(|x| x[0].sin(), &leaf).unwrap_err().to_string();
        assert!(
            error.contains(&format!("the gradient of input 0 of `closure` is kept in {grad}")),
            "{error}"
        );
        assert!(Gradcheck::new().allow_narrowing().check_fn(|x| x[0].sin(), &leaf).found().passed());
    }
    let wide = x(DType::F16).requiring_grad_in(GradDType::Exactly(DType::F32)).unwrap();
    gradcheck_fn(|x| x[0].sin(), &wide).unwrap();
}

#[test]
fn the_gradient_dtype_of_a_typed_input_is_that_of_its_type() {
    let function = || Custom::double(DType::F16, F32, |grad| grad.mul_scalar(2.0));
    let wide = Tensor::<f16, f32>::from_vec(vec![f16::ONE], [1]).unwrap();
    gradcheck(function(), &wide).unwrap();
    let plain = Tensor::<f16>::from_vec(vec![f16::ONE], [1]).unwrap();
    let error = gradcheck(function(), &plain).unwrap_err().to_string();
    assert!(
        error.contains("returned f32 for input 0 of `Custom`, whose gradient is f16: the engine rounds it"),
        "{error}"
    );
    let any = Tensor::<f16, AnyGrad>::from_vec(vec![f16::ONE], [1]).unwrap();
    gradcheck(function(), &any).unwrap();
}

#[test]
fn precision_that_backward_drops_inside_is_found() {
    // Received in f32 and returned in f32, as declared; in between it passes through f16.
    let flushing = |grad: &DynTensor| grad.cast(DType::F16)?.cast(DType::F32)?.mul_scalar(2.0);
    let found = report(Custom::double(DType::F16, F32, flushing), &x(DType::F32));
    assert!(found.mismatches().is_empty(), "f16 outputs are too coarse to show it: {found}");
    let [Violation::Precision { output: 0, input: 0, dtype: DType::F32, got, expected, .. }] =
        found.violations()
    else {
        panic!("{found}")
    };
    assert_eq!(*got, 0.0, "flushed to zero");
    assert!(*expected != 0.0);
    // Nothing underflows in bf16, but bits get lost.
    let rounding = |grad: &DynTensor| grad.cast(DType::BF16)?.cast(DType::F32)?.mul_scalar(2.0);
    let found = report(Custom::double(DType::F16, F32, rounding), &x(DType::F32));
    assert!(matches!(found.violations(), [Violation::Precision { .. }]), "{found}");
    // And in f64.
    let rounding = |grad: &DynTensor| grad.cast(DType::F32)?.cast(DType::F64)?.mul_scalar(2.0);
    let found = report(Custom::double(DType::F64, None, rounding), &x(DType::F64));
    assert!(matches!(found.violations(), [Violation::Precision { .. }]), "{found}");
}

#[test]
fn precision_that_is_lost_inside_a_closure_is_found() {
    let undeclared = |x: &[&DynTensor]| {
        let half = Custom::double(DType::F16, None, |grad| grad.cast(DType::F32)?.mul_scalar(2.0));
        apply(half, x)?[0].cast(DType::F32)
    };
    let declared = |x: &[&DynTensor]| {
        let half = Custom::double(DType::F16, F32, |grad| grad.mul_scalar(2.0));
        apply(half, x)?[0].cast(DType::F32)
    };
    let error = gradcheck_fn(undeclared, &x(DType::F32)).unwrap_err().to_string();
    assert!(
        error.contains("precision is lost between the gradient of output 0 and that of input 0"),
        "{error}"
    );
    gradcheck_fn(declared, &x(DType::F32)).unwrap();
}

#[test]
fn wrong_shapes_counts_and_missing_gradients_are_found() {
    let summed = Custom::double(DType::F32, None, |grad| grad.mul_scalar(2.0)?.sum());
    let found = violations(summed, &x(DType::F32));
    assert_eq!(found[0], "backward returned shape [] for input 0 of `Custom`, which has shape [3]");
    assert!(found[1].starts_with("the backward ended in an error"), "{found:?}");
    let nothing = Custom::new(|_, inputs| Ok(inputs.get(0)?.mul_scalar(2.0)?.into()), |_, _| Ok(None.into()));
    let found = report(nothing, &x(DType::F32));
    assert_eq!(
        found.violations()[0].to_string(),
        "backward returned no gradient for input 0 of `Custom`, which needs one"
    );
    assert_eq!(found.mismatches().len(), 3, "nor are the numbers right: {found}");
    // What has no violation of its own is passed on as it is.
    let two = Custom::new(
        |_, inputs| Ok(inputs.get(0)?.mul_scalar(2.0)?.into()),
        |_, grads| Ok([only(&grads).clone(), only(&grads).clone()].into()),
    );
    assert!(matches!(gradcheck(two, &x(DType::F32)), Err(Error::GradientCount { expected: 1, got: 2, .. })));
}

#[test]
fn outputs_other_than_expected_are_found() {
    let function = || Custom::double(DType::F32, F32, |grad| grad.mul_scalar(2.0));
    let check = |expected: &[(DType, Option<GradDType>)]| {
        let report = Gradcheck::new().expecting(expected).check(function(), &x(DType::F32)).found();
        report.violations().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(check(&[(DType::F32, F32)]), Vec::<String>::new());
    assert_eq!(
        check(&[(DType::F16, F32)]),
        ["output 0 of `Custom` is stored in f32 with gradient f32, expected f16 with gradient f32"]
    );
    assert_eq!(
        check(&[(DType::F32, None)]),
        ["output 0 of `Custom` is stored in f32 with gradient f32, expected f32 with gradient none"]
    );
    assert_eq!(check(&[]), ["1 outputs, expected 0"]);
}

#[test]
fn violations_are_told_apart_from_values_and_each_once() {
    let function = Custom::double(DType::F64, None, |grad| grad.mul_scalar(3.0)?.cast(DType::F32));
    let text = gradcheck(function, &x(DType::F64)).unwrap_err().to_string();
    let (values, contract) =
        (text.find("derivatives are wrong").unwrap(), text.find("the contract is broken:").unwrap());
    assert!(values < contract, "{text}");
    assert_eq!(text.matches("returned f32 for input 0").count(), 1, "{text}");
}
