//! How sharply derivatives are seen, and that what cannot be seen is no success.

use gradpact::prelude::*;
use gradpact::testing::{Gradcheck, gradcheck, gradcheck_fn};

use crate::support::{Custom, Found, of};

#[test]
fn the_uncertainty_of_a_numeric_derivative_holds_in_every_dtype() {
    // sin x, with a gradient of 16: so that the report shows the numeric derivative, of which the exact one is cos x.
    let sine = |x: &[&DynTensor]| {
        let steep = x[0].mul_scalar(16.0)?;
        x[0].sin()?.detach().add(&steep.sub(&steep.detach())?)
    };
    for dtype in DType::FLOATS {
        for nth in 0..30 {
            let x = of(dtype, &[f64::from(nth) * 0.1 - 1.4], [1]);
            let exact = x.to_f64_vec().unwrap()[0].cos();
            let report = Gradcheck::new().allow_unresolved().check_fn(sine, &x).found();
            let [mismatch] = report.mismatches() else { panic!("{dtype} {nth}: {report}") };
            let error = (mismatch.numeric - exact).abs();
            assert!(error <= mismatch.uncertainty, "{dtype}: off by {error}: {mismatch}");
        }
    }
}

#[test]
fn an_output_too_large_to_show_a_derivative_is_reported_and_no_success() {
    // In f16 60000 has neighbours at a distance of 32: the derivative of 1 cannot be seen.
    let hidden = |x: &[&DynTensor]| x[0].cast(DType::F32)?.add_scalar(60_000.0)?.cast(DType::F16);
    let x = of(DType::F32, &[0.5, 1.0], [2]);
    let report = Gradcheck::new().check_fn(hidden, &x).found();
    assert!(report.mismatches().is_empty() && report.violations().is_empty(), "{report}");
    let [unresolved] = report.unresolved() else { panic!("{report}") };
    assert!(
        unresolved.to_string().contains("the rounding of the f16 outputs hides what is below"),
        "{unresolved}"
    );
    assert!(!report.passed());
    assert!(Gradcheck::new().allow_unresolved().check_fn(hidden, &x).found().passed());
    // Seen against what the outputs stand for, it can be checked.
    let sharp = Gradcheck::new().against(|x| x[0].add_scalar(60_000.0)).check_fn(hidden, &x).found();
    assert!(sharp.passed(), "{sharp}");
}

#[test]
fn a_derivative_that_is_zero_need_not_be_seen() {
    for dtype in [DType::F64, DType::F32] {
        // But for rounding the sum is 1.
        gradcheck_fn(|x| x[0].softmax(0)?.sum(), &of(dtype, &[0.5, -1.0, 0.25], [3])).unwrap();
    }
    for dtype in DType::FLOATS {
        gradcheck_fn(|x| x[0].sign(), &of(dtype, &[2.0, -2.0], [2])).unwrap();
    }
}

#[test]
fn a_function_that_rounds_often_inside_is_given_room() {
    // Each intermediate is rounded to f16, and the difference of two large ones is left.
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
        let x = inputs.get(0)?;
        ctx.save_for_backward(x);
        let large = x.mul(x)?.cast(DType::F16)?.add_scalar(30.0)?;
        Ok(large.sub_scalar(30.0)?.into())
    };
    let right = Custom::new(forward, |ctx, grads| {
        Ok(grads[0].as_ref().unwrap().mul(ctx.saved_tensor(0)?)?.mul_scalar(2.0)?.into())
    });
    let x = of(DType::F32, &[0.7, -1.3, 1.9, 0.4], [4]);
    gradcheck(right, &x).unwrap();
    let wrong =
        Custom::new(forward, |ctx, grads| Ok(grads[0].as_ref().unwrap().mul(ctx.saved_tensor(0)?)?.into()));
    assert!(gradcheck(wrong, &x).is_err());
}

#[test]
fn inputs_near_the_edge_of_a_domain_are_fine_and_those_on_it_are_not_seen() {
    let edge = of(DType::F64, &[1e-3, 1e-6, 50.0], [3]);
    gradcheck_fn(|x| x[0].ln(), &edge).unwrap();
    gradcheck_fn(|x| x[0].sqrt(), &edge).unwrap();
    let report = Gradcheck::new().check_fn(|x| x[0].sqrt(), &of(DType::F64, &[0.0], [1])).found();
    let [unresolved] = report.unresolved() else { panic!("{report}") };
    assert!(unresolved.to_string().contains("not finite"), "{unresolved}");
}

#[test]
fn large_and_small_inputs_get_steps_of_their_size() {
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let x = of(dtype, &[1000.0, -0.001, 100.0, 3.0], [4]);
        gradcheck_fn(|x| x[0].mul_scalar(0.5), &x).unwrap();
        gradcheck_fn(|x| x[0].abs()?.sqrt(), &x).unwrap();
    }
}

#[test]
fn tolerances_and_steps_can_be_chosen() {
    // Off by a thousandth: too little for f16, enough for f64.
    let slightly = || Custom::double(DType::F64, None, |grad| grad.mul_scalar(2.002));
    let x = of(DType::F64, &[0.5, -1.0], [2]);
    assert!(gradcheck(slightly(), &x).is_err());
    assert!(Gradcheck::new().rtol(1e-2).check(slightly(), &x).found().passed());
    assert!(Gradcheck::new().atol(1e-2).check(slightly(), &x).found().passed());
    let cubic = |x: &[&DynTensor]| x[0].mul(x[0])?.mul(x[0]);
    assert!(Gradcheck::new().step(1.0).check_fn(cubic, &x).found().passed());
    // No step at all sees nothing.
    for step in [0.0, -1.0, f64::NAN] {
        let report = Gradcheck::new().step(step).check_fn(cubic, &x).found();
        assert!(!report.passed() && !report.unresolved().is_empty(), "{report}");
    }
}
