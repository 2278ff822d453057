//! Loss scaling.

use gradpact::optim::{Adam, GradScaler, Optimizer, ScaledStep, Sgd, clip_grad_norm};
use gradpact::prelude::*;
use gradpact_tests::format::power;

use crate::support::{parameter, says, send, values};

fn plain(lr: f64) -> Optimizer<Sgd> {
    Optimizer::new(Sgd::new(lr)).unwrap()
}

fn f32s(values: &[f64]) -> DynTensor {
    parameter(DType::F32, DType::F32, values)
}

/// A round with a gradient that is finite, or is not.
fn round(scaler: &mut GradScaler, finite: bool) -> Result<ScaledStep> {
    let mut param = f32s(&[0.0]);
    send(&param, &[if finite { 1.0 } else { f64::INFINITY }]);
    let outcome = scaler.step(&mut plain(1.0), &mut [&mut param])?;
    scaler.update()?;
    Ok(outcome)
}

#[test]
fn typed_and_dynamic_losses_are_multiplied_by_the_scale() {
    let scaler = GradScaler::new(1024.0).unwrap();
    let x = Tensor::<f32>::scalar(3.0).requiring_grad().unwrap();
    let scaled: Tensor<f32> = scaler.scale(&x.mul_scalar(2.0).unwrap()).unwrap();
    scaled.backward().unwrap();
    assert_eq!((scaled.item().unwrap(), x.grad().unwrap().item().unwrap()), (6144.0, 2048.0));
    let scaled: DynTensor = scaler.scale(x.as_dyn()).unwrap();
    assert_eq!(scaled.item::<f32>().unwrap(), 3072.0);
    assert_eq!(GradScaler::default().get_scale(), 65536.0);
}

#[test]
fn the_scale_falls_after_a_bad_step_and_grows_after_enough_good_ones_in_a_row() {
    let mut scaler = GradScaler::new(8.0).unwrap();
    scaler = scaler.growth_factor(4.0).unwrap().backoff_factor(0.25).unwrap().growth_interval(3).unwrap();
    let mut scales = Vec::new();
    for finite in [true, true, false, true, true, true, true, true, true, false, false] {
        let outcome = round(&mut scaler, finite).unwrap();
        assert_eq!(outcome == ScaledStep::Done, finite);
        scales.push(scaler.get_scale());
    }
    assert_eq!(scales, [8.0, 8.0, 2.0, 2.0, 2.0, 8.0, 8.0, 8.0, 32.0, 8.0, 2.0]);
}

#[test]
fn a_step_with_values_that_are_not_finite_is_skipped_counts_them_and_drops_the_gradients() {
    let mut scaler = GradScaler::new(2.0).unwrap();
    let (mut a, mut b) = (f32s(&[1.0, 2.0, 3.0]), parameter(DType::F16, DType::F16, &[4.0]));
    let mut optimizer = plain(1.0);
    send(&a, &[f64::NAN, 1.0, f64::NEG_INFINITY]);
    send(&b, &[1e9]);
    let outcome = scaler.step(&mut optimizer, &mut [&mut a, &mut b]).unwrap();
    assert_eq!(outcome, ScaledStep::Skipped { nonfinite: 3 });
    assert_eq!((values(&a), values(&b)), (vec![1.0, 2.0, 3.0], vec![4.0]));
    assert!(a.grad().is_none() && b.grad().is_none());
    scaler.update().unwrap();
    // The next round is not spoilt by this one.
    send(&a, &[1.0; 3]);
    assert_eq!(scaler.step(&mut optimizer, &mut [&mut a, &mut b]).unwrap(), ScaledStep::Done);
    assert_eq!(values(&a), [0.0, 1.0, 2.0], "the gradient of 1 was divided by the scale of 1");
}

#[test]
fn a_skipped_step_does_not_count_as_one_of_the_optimizers() {
    let mut scaler = GradScaler::new(1.0).unwrap();
    let mut optimizer = Optimizer::new(Adam::new(0.125)).unwrap();
    let mut param = parameter(DType::F64, DType::F64, &[0.0]);
    for grad in [f64::NAN, 1.0] {
        send(&param, &[grad * scaler.get_scale()]);
        scaler.step(&mut optimizer, &mut [&mut param]).unwrap();
        scaler.update().unwrap();
    }
    assert!((values(&param)[0] + 0.125 / (1.0 + 1e-8)).abs() < 1e-15, "the length of a first step");
}

#[test]
fn a_gradient_kept_in_f16_goes_into_the_step_unscaled_without_being_rounded_back() {
    // 2^-26 is zero in f16; scaled by 2^16 it is not.
    let mut param = parameter(DType::F16, DType::F16, &[1.0]);
    send(&param, &[power(-10)]);
    let mut scaler = GradScaler::default();
    scaler.step(&mut plain(power(24)), &mut [&mut param]).unwrap();
    assert_eq!(values(&param), [0.75]);
}

#[test]
fn unscaling_by_hand_rounds_to_the_dtype_that_the_gradient_is_kept_in() {
    for (grad, expected) in [(DType::F16, 0.0), (DType::F32, power(-26))] {
        let mut param = parameter(DType::F16, grad, &[1.0]);
        send(&param, &[power(-10)]);
        assert_eq!(GradScaler::default().unscale(&mut [&mut param]).unwrap(), 0);
        let unscaled = param.grad().unwrap();
        assert_eq!((unscaled.dtype(), values(&unscaled)), (grad, vec![expected]));
    }
}

#[test]
fn gradients_unscaled_for_clipping_are_not_unscaled_again_by_the_step() {
    let (mut param, mut scaler) = (f32s(&[0.0, 0.0]), GradScaler::new(16.0).unwrap());
    send(&param, &[48.0, 64.0]);
    assert_eq!(scaler.unscale(&mut [&mut param]).unwrap(), 0);
    assert_eq!(clip_grad_norm(&mut [&mut param], 10.0).unwrap(), 5.0);
    scaler.step(&mut plain(1.0), &mut [&mut param]).unwrap();
    assert_eq!(values(&param), [-3.0, -4.0]);
}

#[test]
fn what_unscaling_found_skips_the_step_even_if_it_was_clipped_away() {
    let (mut param, mut scaler) = (f32s(&[1.0, 1.0]), GradScaler::new(16.0).unwrap());
    send(&param, &[f64::INFINITY, 1.0]);
    assert_eq!(scaler.unscale(&mut [&mut param]).unwrap(), 1);
    param.zero_grad();
    send(&param, &[1.0, 1.0]);
    let outcome = scaler.step(&mut plain(1.0), &mut [&mut param]).unwrap();
    assert_eq!(outcome, ScaledStep::Skipped { nonfinite: 1 });
    scaler.update().unwrap();
    assert_eq!(scaler.get_scale(), 8.0);
}

#[test]
fn one_scaler_serves_several_optimizers_and_skips_only_the_bad_ones() {
    let (mut good, mut bad, mut scaler) = (f32s(&[1.0]), f32s(&[1.0]), GradScaler::new(2.0).unwrap());
    let (mut first, mut second) = (plain(1.0), plain(1.0));
    send(&bad, &[f64::NAN]);
    send(&good, &[2.0]);
    assert_eq!(scaler.step(&mut first, &mut [&mut bad]).unwrap(), ScaledStep::Skipped { nonfinite: 1 });
    assert_eq!(scaler.step(&mut second, &mut [&mut good]).unwrap(), ScaledStep::Done);
    scaler.update().unwrap();
    assert_eq!((values(&bad), values(&good), scaler.get_scale()), (vec![1.0], vec![0.0], 1.0));
}

#[test]
fn unscaling_or_stepping_twice_in_a_round_is_an_error_that_names_the_parameter() {
    let (mut a, mut b, mut scaler) = (f32s(&[1.0]), f32s(&[1.0]), GradScaler::new(2.0).unwrap());
    let mut optimizer = plain(1.0);
    send(&a, &[4.0]);
    send(&b, &[4.0]);
    scaler.unscale(&mut [&mut b]).unwrap();
    says(scaler.unscale(&mut [&mut a, &mut b]), &["`unscale`", "parameter 1", "unscaled already"]);
    assert_eq!(values(&a.grad().unwrap()), [4.0], "nothing was unscaled");
    scaler.step(&mut optimizer, &mut [&mut a, &mut b]).unwrap();
    assert_eq!((values(&a), values(&b)), (vec![-1.0], vec![-1.0]));
    send(&a, &[4.0]);
    says(scaler.step(&mut optimizer, &mut [&mut a, &mut b]), &["`step`", "parameter 0", "between updates"]);
    says(scaler.unscale(&mut [&mut a]), &["`unscale`", "parameter 0", "a step was made"]);
    scaler.update().unwrap();
    scaler.step(&mut optimizer, &mut [&mut a, &mut b]).unwrap();
    assert_eq!(values(&a), [-3.0]);
}

#[test]
fn an_update_without_a_step_and_a_step_without_gradients_are_errors() {
    let (mut param, mut scaler) = (f32s(&[1.0]), GradScaler::default());
    says(scaler.update(), &["`update`", "got none since the last update"]);
    says(scaler.step(&mut plain(1.0), &mut [&mut param]), &["`step`", "expected gradients, got none"]);
    says(scaler.update(), &["`update`"]);
}

#[test]
fn a_step_that_the_optimizer_refuses_leaves_everything_as_it_was() {
    let (mut param, mut scaler, mut optimizer) = (f32s(&[1.0]), GradScaler::new(2.0).unwrap(), plain(1.0));
    send(&param, &[2.0]);
    let mut computed = param.mul(&param).unwrap();
    says(scaler.step(&mut optimizer, &mut [&mut param, &mut computed]), &["parameter 1", "`Mul`"]);
    says(scaler.update(), &["got none"]);
    scaler.step(&mut optimizer, &mut [&mut param]).unwrap();
    assert_eq!(values(&param), [0.0]);
}

#[test]
fn a_scale_below_one_is_allowed_and_one_without_sense_is_not() {
    let (mut param, mut scaler) = (f32s(&[1.0]), GradScaler::new(0.25).unwrap());
    send(&param, &[0.25]);
    scaler.step(&mut plain(1.0), &mut [&mut param]).unwrap();
    assert_eq!(values(&param), [0.0]);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e39, 1e-40] {
        says(GradScaler::new(bad), &["`GradScaler`", "scale", &format!("got {bad}")]);
    }
    for bad in [1.0, 0.5, f64::NAN, f64::INFINITY] {
        says(GradScaler::default().growth_factor(bad), &["growth_factor", &format!("got {bad}")]);
    }
    for bad in [0.0, 1.0, -0.5, f64::NAN] {
        says(GradScaler::default().backoff_factor(bad), &["backoff_factor", &format!("got {bad}")]);
    }
    says(GradScaler::default().growth_interval(0), &["growth_interval", "got 0"]);
}

#[test]
fn a_scale_never_leaves_the_numbers_of_f32() {
    let mut high = GradScaler::new(power(127)).unwrap().growth_interval(1).unwrap();
    round(&mut high, true).unwrap();
    assert_eq!(high.get_scale(), power(127), "as in PyTorch");
    let mut low = GradScaler::new(power(-125)).unwrap();
    round(&mut low, false).unwrap();
    assert_eq!(low.get_scale(), power(-126));
    says(round(&mut low, false), &["`update`", "infinite or NaN ones even at"]);
}
