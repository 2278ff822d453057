//! What a check is told: what to compare with, which inputs, what to accept.

use gradpact::prelude::*;
use gradpact::testing::{Gradcheck, gradcheck};

use crate::support::{Custom, Found, of, only};

/// `round(x / step)` as an `i8`, with a straight-through gradient times `slope`.
#[autograd_function(out = i8, grad = f32)]
struct Quantize {
    step: f64,
    slope: f64,
}

impl Op for Quantize {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<i8>> {
        let quantized = |&x: &f32| (f64::from(x) / self.step).round_ties_even() as i8;
        Value::from_vec(x.to_vec()?.iter().map(quantized).collect(), x.shape())
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul_scalar(self.slope)
    }
}

#[test]
fn integers_are_compared_with_what_they_stand_for() {
    let x = Tensor::<f32>::from_vec(vec![0.5, -1.0, 2.0], [3]).unwrap();
    let quantize = |slope| Quantize { step: 0.25, slope };
    let error = gradcheck(quantize(4.0), &x).unwrap_err().to_string();
    assert!(error.contains("is i8, of which finite differences mean nothing: give `against`"), "{error}");
    let against = || Gradcheck::new().against(|x| x[0].mul_scalar(4.0));
    let right = against().check(quantize(4.0), &x).found();
    assert!(right.passed(), "{right}");
    let wrong = against().check(quantize(0.25), &x).found();
    assert_eq!(wrong.mismatches().len(), 3, "{wrong}");
    let unseen = Gradcheck::new().contract_only().check(quantize(0.25), &x).found();
    assert!(unseen.passed() && unseen.accuracy().is_empty(), "{unseen}");
}

#[test]
fn what_stands_for_the_outputs_must_fit_them() {
    let x = of(DType::F32, &[0.5, -1.0], [2]);
    let quantize = || Quantize { step: 1.0, slope: 1.0 };
    let two = Gradcheck::new().against(|x| Ok([x[0].clone(), x[0].clone()]));
    let error = two.check(quantize(), &x).unwrap_err().to_string();
    assert!(error.contains("`against` returned 2 outputs, expected 1"), "{error}");
    let short = Gradcheck::new().against(|x| x[0].sum());
    let error = short.check(quantize(), &x).unwrap_err().to_string();
    assert!(error.contains("what stands for output 0 is missing, or has fewer elements"), "{error}");
}

#[test]
fn the_reference_sees_f64_and_finds_what_f16_outputs_hide() {
    // Off by a percent: less than f16 outputs with their tolerance show, more than the reference forgives.
    let slightly =
        || Custom::double(DType::F16, Some(GradDType::Exactly(DType::F32)), |grad| grad.mul_scalar(2.02));
    let x = of(DType::F32, &[0.5, -1.0], [2]);
    let reference = |x: &[&DynTensor]| {
        assert_eq!(x[0].dtype(), DType::F64);
        x[0].mul_scalar(2.0)
    };
    let report = Gradcheck::new().against(reference).rtol(1e-3).check(slightly(), &x).found();
    assert_eq!(report.mismatches().len(), 2, "{report}");
    let [mismatch, _] = report.mismatches() else { panic!("{report}") };
    assert!(mismatch.uncertainty < 1e-9, "{mismatch}");
}

#[test]
fn only_the_inputs_that_are_asked_for_are_checked() {
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.save_for_backward((inputs.get(0)?, inputs.get(1)?));
        Ok(inputs.get(0)?.mul(inputs.get(1)?)?.into())
    };
    // Right for the first input only.
    let half_right = || {
        Custom::new(forward, |ctx, grads| {
            let b = ctx.saved_tensor(1)?;
            Ok([only(&grads).mul(b)?, only(&grads).clone()].into())
        })
    };
    let (a, b) = (of(DType::F32, &[0.5, -1.0], [2]), of(DType::F32, &[2.0, 0.25], [2]));
    assert!(gradcheck(half_right(), (&a, &b)).is_err());
    assert!(Gradcheck::new().only(&[0]).check(half_right(), (&a, &b)).found().passed());
    assert!(!Gradcheck::new().only(&[1]).check(half_right(), (&a, &b)).found().passed());
    assert!(Gradcheck::new().only(&[0, 0]).check(half_right(), (&a, &b)).found().passed());
    let error = Gradcheck::new().only(&[2]).check(half_right(), (&a, &b)).unwrap_err().to_string();
    assert!(error.contains("input 2 of `Custom` has no gradient"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let x = of(DType::F32, &[0.5, -1.0, 0.3], [3]);
    let report = |seed| Gradcheck::new().fast().seed(seed).check_fn(|x| x[0].sin(), &x).found().to_string();
    assert_eq!(report(3), report(3));
    assert_ne!(report(3), report(4));
}
