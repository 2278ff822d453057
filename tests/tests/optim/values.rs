//! The values of steps: against the formulas in `f64`, and where they are known exactly.

use gradpact::optim::{Adam, AdamW, Optimizer, Sgd};
use gradpact::prelude::*;
use gradpact_tests::format::{bits, floor_log2, power};

use crate::formulas::{EVERY, Number};
use crate::support::{FLOATS, every_optimizer, of, parameter, send, values};

/// Values and gradients that every floating dtype holds exactly.
const START: [f64; 4] = [1.0, -0.75, 0.125, -2.0];
const GRADS: [[f64; 4]; 5] = [
    [0.5, 0.25, -1.0, 1.5],
    [0.25, -0.5, -0.75, 1.0],
    [-0.5, 0.25, 1.0, 1.25],
    [1.0, 0.375, -0.25, -0.5],
    [0.75, -0.25, 0.5, 0.25],
];

/// Half the distance between neighbours of `dtype` around `value`.
fn half_spacing(dtype: DType, value: f64) -> f64 {
    let (exponent, fraction) = bits(dtype).unwrap();
    let lowest = 2 - (1 << (exponent - 1));
    let leading = if value == 0.0 { lowest } else { floor_log2(value).max(lowest) };
    power(leading - fraction) / 2.0
}

#[test]
fn every_rule_follows_its_formula_for_every_pair_of_dtypes_and_rounds_once() {
    for (dtype, grad) in FLOATS.into_iter().flat_map(|d| FLOATS.map(|g| (d, g))) {
        let wide = if dtype == DType::F64 || grad == DType::F64 { DType::F64 } else { DType::F32 };
        for (mut optimizer, formula) in every_optimizer(false).into_iter().zip(EVERY) {
            let mut param = parameter(dtype, grad, &START);
            let mut expected = [Number::new(formula); 4];
            for (step, grads) in GRADS.iter().enumerate() {
                let before = values(&param);
                send(&param, grads);
                optimizer.step(&mut [&mut param]).unwrap();
                for (at, after) in values(&param).into_iter().enumerate() {
                    let exact = expected[at].step(0.25, before[at], grads[at]);
                    // The dtype's own rounding, of a number that itself is off by the roundings of the wide arithmetic:
                    // fewer than 20 in a step, each of a number less than 4, as is what they are multiplied by later.
                    let wide_error = 20.0 * (step + 1) as f64 * 4.0 * half_spacing(wide, 1.0) * 4.0;
                    let bound = half_spacing(dtype, exact.abs().max(after.abs())) + wide_error;
                    assert!(
                        (after - exact).abs() <= bound,
                        "{} on {dtype}, gradient {grad}, step {step}: {after}, expected {exact} ± {bound}",
                        optimizer.name()
                    );
                }
            }
        }
    }
}

#[test]
fn with_a_master_copy_what_is_stored_is_the_copy_rounded_once() {
    for (dtype, grad) in FLOATS.into_iter().flat_map(|d| FLOATS.map(|g| (d, g))) {
        let wide = if dtype == DType::F64 || grad == DType::F64 { DType::F64 } else { DType::F32 };
        for (mut optimizer, formula) in every_optimizer(true).into_iter().zip(EVERY) {
            let mut param = parameter(dtype, grad, &START);
            let (mut expected, mut copy) = ([Number::new(formula); 4], START);
            for (step, grads) in GRADS.iter().enumerate() {
                send(&param, grads);
                optimizer.step(&mut [&mut param]).unwrap();
                for (at, after) in values(&param).into_iter().enumerate() {
                    copy[at] = expected[at].step(0.25, copy[at], grads[at]);
                    let wide_error = 20.0 * (step + 1) as f64 * 4.0 * half_spacing(wide, 1.0) * 4.0;
                    let bound = half_spacing(dtype, copy[at].abs().max(after.abs())) + wide_error;
                    assert!(
                        (after - copy[at]).abs() <= bound,
                        "{} on {dtype}, gradient {grad}, step {step}: {after}, expected {} ± {bound}",
                        optimizer.name(),
                        copy[at]
                    );
                }
            }
        }
    }
}

/// The values of a parameter that starts at `start` and gets the gradient `grad` in every step.
fn path(mut step: impl FnMut(&mut DynTensor), start: f64, grad: f64, steps: usize) -> Vec<f64> {
    let mut param = parameter(DType::F32, DType::F32, &[start]);
    let each = |_| {
        send(&param, &[grad]);
        step(&mut param);
        values(&param)[0]
    };
    (0..steps).map(each).collect()
}

fn sgd(rule: Sgd) -> impl FnMut(&mut DynTensor) {
    let mut optimizer = Optimizer::new(rule).unwrap();
    move |param| optimizer.step(&mut [param]).unwrap()
}

#[test]
fn momentum_starts_from_the_undampened_gradient_as_in_pytorch() {
    // Buffers of 1, 1.5, 1.75 and 1.875.
    assert_eq!(path(sgd(Sgd::new(1.0).momentum(0.5)), 0.0, 1.0, 4), [-1.0, -2.5, -4.25, -6.125]);
    // 1, then always 0.5 · 1 + 0.5 · 1.
    assert_eq!(path(sgd(Sgd::new(1.0).momentum(0.5).dampening(0.5)), 0.0, 1.0, 3), [-1.0, -2.0, -3.0]);
    // 1 + 0.5 · 1, 1 + 0.5 · 1.5, 1 + 0.5 · 1.75.
    assert_eq!(path(sgd(Sgd::new(1.0).momentum(0.5).nesterov(true)), 0.0, 1.0, 3), [-1.5, -3.25, -5.125]);
}

#[test]
fn weight_decay_of_gradient_descent_is_part_of_the_gradient() {
    // 2 − (1 + 2/2)/4, and 1.5 − (1 + 1.5/2)/4.
    assert_eq!(path(sgd(Sgd::new(0.25).weight_decay(0.5)), 2.0, 1.0, 2), [1.5, 1.0625]);
}

#[test]
fn without_weight_decay_an_infinite_weight_makes_no_nan() {
    let mut param = parameter(DType::F32, DType::F32, &[f64::INFINITY]);
    send(&param, &[1.0]);
    Optimizer::new(Sgd::new(0.25)).unwrap().step(&mut [&mut param]).unwrap();
    assert_eq!(values(&param), [f64::INFINITY]);
}

#[test]
fn the_first_step_of_adam_is_the_learning_rate_times_the_sign() {
    for grad in [1e-3, -1e-2, 0.5, -7.0, 1e3] {
        let mut param = parameter(DType::F64, DType::F64, &[0.0]);
        send(&param, &[grad]);
        Optimizer::new(Adam::new(0.125)).unwrap().step(&mut [&mut param]).unwrap();
        let expected = -0.125 * grad / (grad.abs() + 1e-8);
        assert!((values(&param)[0] - expected).abs() < 1e-15, "{grad}");
    }
}

#[test]
fn adam_w_shrinks_weights_apart_from_the_gradient_and_adam_through_it() {
    let decayed = |mut optimizer: Box<dyn crate::support::Stepper>| {
        let step = move |param: &mut DynTensor| optimizer.step(&mut [param]).unwrap();
        path(step, 4.0, 0.0, 2)
    };
    // Without a gradient the moments stay zero, and 1 − 0.5 · 0.5 is left in each step.
    let adam_w = Optimizer::new(AdamW::new(0.5).weight_decay(0.5)).unwrap();
    assert_eq!(decayed(Box::new(adam_w)), [3.0, 2.25]);
    // Here the decay is a gradient of 2: the first step has the length of the learning rate.
    let adam = Optimizer::new(Adam::new(0.5).weight_decay(0.5)).unwrap();
    assert!((decayed(Box::new(adam))[0] - 3.5).abs() < 1e-6);
}

#[test]
fn the_defaults_are_those_of_pytorch() {
    let adam = Optimizer::new(Adam::new(1e-3)).unwrap();
    let same = Optimizer::new(Adam::new(1e-3).betas(0.9, 0.999).eps(1e-8).weight_decay(0.0)).unwrap();
    assert_eq!(adam.rule(), same.rule());
    let adam_w = Optimizer::new(AdamW::new(1e-3)).unwrap();
    let same = Optimizer::new(AdamW::new(1e-3).betas(0.9, 0.999).eps(1e-8).weight_decay(1e-2)).unwrap();
    assert_eq!(adam_w.rule(), same.rule());
}

#[test]
fn a_gradient_too_small_for_the_stored_dtype_still_moves_it() {
    // 1e-8 is zero in f16.
    let mut param = parameter(DType::F16, DType::F32, &[1.0]);
    send(&param, &[1e-8]);
    Optimizer::new(Sgd::new(5e7)).unwrap().step(&mut [&mut param]).unwrap();
    assert_eq!(values(&param), [0.5]);
}

#[test]
fn a_gradient_in_any_dtype_is_used_as_it_came() {
    let mut param = of(DType::F16, &[1.0]).requiring_grad_in(GradDType::Any).unwrap();
    let mut optimizer = Optimizer::new(Sgd::new(0.25).momentum(0.5)).unwrap();
    for (dtype, expected) in [(DType::F32, 0.75), (DType::F64, 0.375), (DType::BF16, -0.0625)] {
        param.backward_with(&of(dtype, &[1.0]), BackwardOptions::new()).unwrap();
        assert_eq!(param.grad().unwrap().dtype(), dtype);
        optimizer.step(&mut [&mut param]).unwrap();
        assert_eq!(values(&param), [expected], "{dtype}");
        assert_eq!(param.grad_dtype(), Some(GradDType::Any));
    }
}

#[test]
fn views_and_empty_parameters_are_updated_like_others() {
    let turned = of(DType::F32, &[1.0, 2.0, 3.0, 4.0]).reshape([2, 2]).unwrap().transpose(0, 1).unwrap();
    let (mut turned, mut empty) = (turned.requiring_grad().unwrap(), parameter(DType::F16, DType::F32, &[]));
    send(&turned, &[1.0, 2.0, 3.0, 4.0]);
    send(&empty, &[]);
    Optimizer::new(Sgd::new(1.0)).unwrap().step(&mut [&mut turned, &mut empty]).unwrap();
    assert_eq!((values(&turned), values(&empty)), (vec![0.0, 1.0, -1.0, 0.0], vec![]));
}
