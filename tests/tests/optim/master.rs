//! Master weights: updates smaller than the spacing of the stored dtype.

use gradpact::optim::{Optimizer, Sgd};
use gradpact::prelude::*;
use gradpact_tests::format::{bits, power};

use crate::support::{of, parameter, send, values};

/// Each dtype that is narrower than the arithmetic, with the gradient dtype that decides about that.
const NARROW: [(DType, DType); 5] = [
    (DType::F8E4M3, DType::F32),
    (DType::F8E5M2, DType::F32),
    (DType::F16, DType::F32),
    (DType::BF16, DType::F32),
    (DType::F32, DType::F64),
];

/// What a one is after eight updates of a quarter of the spacing just below it.
fn after_eight_small_steps(dtype: DType, grad: DType, master: bool) -> f64 {
    let (_, fraction) = bits(dtype).unwrap();
    let mut param = parameter(dtype, grad, &[1.0]);
    let mut optimizer = Optimizer::new(Sgd::new(power(-fraction - 3))).unwrap().master_weights(master);
    for _ in 0..8 {
        send(&param, &[1.0]);
        optimizer.step(&mut [&mut param]).unwrap();
    }
    values(&param)[0]
}

#[test]
fn small_updates_vanish_without_a_master_copy_and_add_up_with_one() {
    for (dtype, grad) in NARROW {
        let (_, fraction) = bits(dtype).unwrap();
        assert_eq!(after_eight_small_steps(dtype, grad, false), 1.0, "{dtype}: each is rounded away");
        let two_spacings = power(-fraction);
        assert_eq!(after_eight_small_steps(dtype, grad, true), 1.0 - two_spacings, "{dtype}");
    }
}

#[test]
fn a_dtype_as_wide_as_the_arithmetic_needs_no_copy() {
    for dtype in [DType::F32, DType::F64] {
        let mut param = parameter(dtype, dtype, &[1.0]);
        let mut optimizer = Optimizer::new(Sgd::new(0.5)).unwrap().master_weights(true);
        send(&param, &[1.0]);
        optimizer.step(&mut [&mut param]).unwrap();
        let file = String::from_utf8_lossy(&optimizer.to_safetensors().unwrap()).into_owned();
        assert!(file.contains("0.has_master") && !file.contains("0.master\""), "{dtype}");
    }
}

/// An f16 one whose copy is a quarter of the spacing less.
fn one_and_its_optimizer() -> (DynTensor, Optimizer<Sgd>) {
    let mut param = parameter(DType::F16, DType::F32, &[1.0]);
    let mut optimizer = Optimizer::new(Sgd::new(power(-13))).unwrap().master_weights(true);
    send(&param, &[1.0]);
    optimizer.step(&mut [&mut param]).unwrap();
    assert_eq!(values(&param), [1.0]);
    (param, optimizer)
}

#[test]
fn a_leaf_with_other_values_in_the_variable_starts_the_copy_anew() {
    let (mut param, mut optimizer) = one_and_its_optimizer();
    param =
        param.detach().mul_scalar(0.5).unwrap().requiring_grad_in(GradDType::Exactly(DType::F32)).unwrap();
    send(&param, &[0.0]);
    optimizer.step(&mut [&mut param]).unwrap();
    assert_eq!(values(&param), [0.5], "not the old copy, which is near 1");
}

#[test]
fn a_leaf_with_the_same_values_in_the_variable_keeps_the_copy() {
    let (mut param, mut optimizer) = one_and_its_optimizer();
    param = of(DType::F16, &values(&param)).requiring_grad_in(GradDType::Exactly(DType::F32)).unwrap();
    send(&param, &[2.0]);
    optimizer.step(&mut [&mut param]).unwrap();
    // Three quarters of the spacing round to a whole one; without the first of them it would be a tie, rounded to one.
    assert_eq!(values(&param), [1.0 - power(-11)]);
}

#[test]
fn the_copy_can_be_given_up_and_taken_up_again() {
    let (mut param, optimizer) = one_and_its_optimizer();
    let mut optimizer = optimizer.master_weights(false);
    send(&param, &[1.0]);
    optimizer.step(&mut [&mut param]).unwrap();
    assert_eq!(values(&param), [1.0]);
    let mut optimizer = optimizer.master_weights(true);
    for expected in [1.0, 1.0, 1.0 - power(-11)] {
        send(&param, &[1.0]);
        optimizer.step(&mut [&mut param]).unwrap();
        assert_eq!(values(&param), [expected], "from what was stored: three quarters round to a whole");
    }
}
