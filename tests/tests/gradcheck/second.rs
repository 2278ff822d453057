//! Second derivatives.

use gradpact::prelude::*;
use gradpact::testing::{Gradcheck, gradcheck, gradgradcheck, gradgradcheck_fn};

use crate::support::{Custom, Found, of};

/// x³ stored in `out`, whose backward is right at first order; `backward` computes the square that it needs.
fn cube(
    out: DType,
    square: fn(&DynTensor) -> Result<DynTensor>,
    save: fn(&DynTensor) -> Result<DynTensor>,
) -> Custom {
    let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(inputs.get(0)?.dtype())])?;
        let x = inputs.get(0)?;
        ctx.save_for_backward(&save(x)?);
        Ok(x.mul(x)?.mul(x)?.cast(out)?.into())
    };
    Custom::new(forward, move |ctx, grads| {
        Ok(grads[0].as_ref().unwrap().mul(&square(ctx.saved_tensor(0)?)?)?.mul_scalar(3.0)?.into())
    })
}

const RIGHT: fn(&DynTensor) -> Result<DynTensor> = |x| x.mul(x);
const SAME: fn(&DynTensor) -> Result<DynTensor> = |x| Ok(x.clone());

#[test]
fn a_backward_that_can_be_differentiated_passes_in_every_dtype() {
    for (out, dtype) in [
        (DType::F64, DType::F64),
        (DType::F32, DType::F32),
        (DType::F16, DType::F32),
        (DType::BF16, DType::F32),
        (DType::F16, DType::F16),
        (DType::BF16, DType::BF16),
    ] {
        let x = of(dtype, &[0.5, -1.0, 1.5], [3]);
        let report = gradgradcheck(cube(out, RIGHT, SAME), &x).unwrap();
        assert_eq!(report.accuracy().len(), 2, "by the input, and by the gradient: {report}");
        assert!(report.to_string().contains("gradcheck of `gradient of Custom` passed"), "{report}");
    }
}

#[test]
fn a_backward_that_is_right_once_and_wrong_twice_is_found() {
    // It detaches what it saved: the first derivative is right, the second misses a term.
    let detached = || cube(DType::F64, |x| x.mul(&x.detach()), SAME);
    let x = of(DType::F64, &[0.5, -1.0, 1.5], [3]);
    gradcheck(detached(), &x).unwrap();
    let report = Gradcheck::new().check_twice(detached(), &x).found();
    assert_eq!(report.mismatches().len(), 3, "{report}");
    let worst = &report.mismatches()[0];
    assert!((2.0 * worst.analytic - worst.numeric).abs() < 1e-6, "half of it is missing: {worst}");
    // Also where the outputs are stored in f16.
    let x = of(DType::F32, &[0.5, -1.0, 1.5], [3]);
    assert!(gradgradcheck(cube(DType::F16, |x| x.mul(&x.detach()), SAME), &x).is_err());
}

#[test]
fn a_saved_intermediate_is_the_error_that_the_engine_gives() {
    let intermediate = || cube(DType::F64, |square| Ok(square.clone()), |x| x.mul(x));
    let x = of(DType::F64, &[0.5, -1.0], [2]);
    gradcheck(intermediate(), &x).unwrap();
    let error = gradgradcheck(intermediate(), &x).unwrap_err();
    assert!(matches!(error.root(), Error::SavedIntermediate(name) if name == "Custom"), "{error}");
}

#[test]
fn the_contract_holds_in_a_backward_that_is_recorded() {
    let narrow = Custom::double(DType::F32, None, |grad| grad.mul_scalar(2.0)?.cast(DType::F16));
    let error = gradgradcheck(narrow, &of(DType::F32, &[0.5, -1.0], [2])).unwrap_err().to_string();
    assert!(
        error.contains("backward returned f16 for input 0 of `Custom`, whose gradient is f32"),
        "{error}"
    );
}

#[test]
fn a_linear_function_has_a_second_derivative_by_its_gradient_only() {
    let x = of(DType::F64, &[0.5, -1.0], [2]);
    gradgradcheck_fn(|x| x[0].mul_scalar(3.0), &x).unwrap();
    gradgradcheck_fn(|x| x[0].mul(x[1])?.sum(), (&x, &x)).unwrap();
}

#[test]
fn what_has_no_first_derivative_has_no_second() {
    let x = of(DType::F64, &[0.5, -1.0], [2]);
    let error = gradgradcheck_fn(|x| Ok(x[0].detach()), &x).unwrap_err().to_string();
    assert!(error.contains("no output of `closure` has a gradient"), "{error}");
    let error =
        Gradcheck::new().against(|x| x[0].sin()).check_twice_fn(|x| x[0].sin(), &x).unwrap_err().to_string();
    assert!(error.contains("`against` is for first derivatives"), "{error}");
}
