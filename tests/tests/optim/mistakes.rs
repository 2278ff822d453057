//! Mistakes: each an error that names the position, after which everything is as before.

use gradpact::optim::{Adam, AdamW, Optimizer, Sgd, grad_norm};
use gradpact::prelude::*;

use crate::support::{every_optimizer, of, parameter, says, send, values};

fn plain() -> Optimizer<Sgd> {
    Optimizer::new(Sgd::new(1.0)).unwrap()
}

fn f32s(values: &[f64]) -> DynTensor {
    parameter(DType::F32, DType::F32, values)
}

#[test]
fn numbers_out_of_range_are_refused_when_the_optimizer_is_made() {
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let got = format!("got {bad}");
        says(Optimizer::new(Sgd::new(bad)), &["`Sgd`", "lr", "finite and not negative", &got]);
        says(Optimizer::new(Sgd::new(0.1).momentum(bad)), &["`Sgd`", "momentum", &got]);
        says(Optimizer::new(Sgd::new(0.1).weight_decay(bad)), &["`Sgd`", "weight_decay", &got]);
        says(Optimizer::new(Adam::new(bad)), &["`Adam`", "lr", &got]);
        says(Optimizer::new(Adam::new(0.1).eps(bad)), &["`Adam`", "eps", &got]);
        says(Optimizer::new(AdamW::new(0.1).weight_decay(bad)), &["`AdamW`", "weight_decay", &got]);
    }
    for bad in [-0.1, 1.0, f64::NAN] {
        let got = format!("got {bad}");
        says(Optimizer::new(Adam::new(0.1).betas(bad, 0.9)), &["`Adam`", "beta1", "less than 1", &got]);
        says(Optimizer::new(AdamW::new(0.1).betas(0.9, bad)), &["`AdamW`", "beta2", "less than 1", &got]);
    }
    says(Optimizer::new(Sgd::new(0.1).dampening(f64::NAN)), &["`Sgd`", "dampening", "got NaN"]);
    says(Optimizer::new(Sgd::new(0.1).nesterov(true)), &["nesterov", "momentum 0"]);
    says(Optimizer::new(Sgd::new(0.1).nesterov(true).momentum(0.5).dampening(0.1)), &["dampening 0.1"]);
}

#[test]
fn a_learning_rate_that_is_refused_leaves_the_one_before() {
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let mut optimizer = plain();
        says(optimizer.set_lr(bad), &["`Sgd`", "lr", &format!("got {bad}")]);
        assert_eq!(optimizer.lr(), 1.0);
    }
}

#[test]
fn what_is_no_leaf_is_named_by_its_position() {
    let mut leaf = f32s(&[1.0]);
    send(&leaf, &[1.0]);
    let mut product = leaf.mul(&leaf).unwrap();
    let mut data = Tensor::<f32>::ones([1]).unwrap();
    let mut integer = Tensor::<i64>::ones([1]).unwrap();
    says(
        plain().step(&mut [&mut leaf, &mut product]),
        &["`step`", "parameter 1", "a leaf", "output 0 of `Mul`"],
    );
    says(
        plain().step(&mut [&mut data, &mut leaf]),
        &["parameter 0", "requiring_grad", "an untracked tensor"],
    );
    says(plain().step(&mut [&mut leaf, &mut integer]), &["parameter 1", "an untracked tensor"]);
    says(grad_norm(&mut [&mut data]), &["`grad_norm`", "parameter 0", "an untracked tensor"]);
    assert_eq!((values(&leaf), leaf.grad().is_some()), (vec![1.0], true));
}

#[test]
fn a_parameter_given_twice_is_named_with_both_positions() {
    let (mut a, mut b) = (f32s(&[1.0]), f32s(&[2.0]));
    let mut again = a.clone();
    says(
        plain().step(&mut [&mut a, &mut b, &mut again]),
        &["parameter 2", "each parameter once", "parameter 0 again"],
    );
}

#[test]
fn no_parameters_at_all_are_a_mistake_as_in_pytorch() {
    says(plain().step(&mut []), &["`step`", "an empty list"]);
}

#[test]
fn another_number_shape_dtype_or_order_than_in_the_step_before_is_named() {
    for mut optimizer in every_optimizer(true) {
        let (mut a, mut b) = (f32s(&[1.0, 2.0]), f32s(&[3.0, 4.0]));
        for _ in 0..2 {
            send(&a, &[1.0, 1.0]);
            send(&b, &[1.0, 1.0]);
            optimizer.step(&mut [&mut a, &mut b]).unwrap();
        }
        let before = (values(&a), values(&b));
        says(optimizer.step(&mut [&mut a]), &["expected 2 parameters", "got 1"]);
        let mut other = f32s(&[1.0]);
        says(
            optimizer.step(&mut [&mut a, &mut other]),
            &["parameter 1", "expected f32 [2], as before", "got f32 [1]"],
        );
        let mut other = parameter(DType::F16, DType::F32, &[1.0, 2.0]);
        says(
            optimizer.step(&mut [&mut other, &mut b]),
            &["parameter 0", "expected f32 [2], as before", "got f16 [2]"],
        );
        says(optimizer.step(&mut [&mut b, &mut a]), &["parameter 0", "the one that had position 1"]);
        assert_eq!((values(&a), values(&b)), before);
        optimizer.step(&mut [&mut a, &mut b]).unwrap();
    }
}

#[test]
fn what_is_remembered_in_f64_is_not_rounded_to_f32() {
    let mut param = parameter(DType::F32, DType::F64, &[1.0]);
    let mut optimizer = Optimizer::new(Sgd::new(1.0).momentum(0.5)).unwrap();
    send(&param, &[1.0]);
    optimizer.step(&mut [&mut param]).unwrap();
    param.set_grad_dtype(GradDType::Exactly(DType::F32)).unwrap();
    says(
        optimizer.step(&mut [&mut param]),
        &["parameter 0", "f64 values or gradients, as before", "narrower"],
    );
    // The other way nothing is lost.
    let mut param = parameter(DType::F32, DType::F32, &[1.0]);
    let mut optimizer = Optimizer::new(Sgd::new(1.0).momentum(0.5)).unwrap();
    send(&param, &[1.0]);
    optimizer.step(&mut [&mut param]).unwrap();
    param.set_grad_dtype(GradDType::Exactly(DType::F64)).unwrap();
    send(&param, &[1.0]);
    optimizer.step(&mut [&mut param]).unwrap();
    assert_eq!(values(&param), [-1.5]);
}

#[test]
fn a_variable_whose_tensor_is_not_of_its_type_is_refused_before_anything_is_changed() {
    let mut first = f32s(&[1.0]);
    let mut param = Tensor::<f16, f32>::ones([1]).unwrap().requiring_grad().unwrap();
    param.as_dyn().set_grad_dtype(GradDType::Exactly(DType::F64)).unwrap();
    send(&first, &[1.0]);
    says(plain().step(&mut [&mut first, &mut param]), &["gradient dtype", "expected", "f32", "got f64"]);
    assert_eq!(values(&first), [1.0]);
}

#[test]
fn a_step_that_is_refused_has_changed_neither_parameters_nor_what_is_remembered() {
    for (mut optimizer, mut twin) in every_optimizer(true).into_iter().zip(every_optimizer(true)) {
        let start = || [[1.0, 2.0], [3.0, 4.0]].map(|values| parameter(DType::F16, DType::F32, &values));
        let ([mut a, mut b], [mut c, mut d]) = (start(), start());
        for _ in 0..3 {
            for param in [&a, &b, &c, &d] {
                send(param, &[0.5, -0.25]);
            }
            let mut computed = b.mul(&b).unwrap();
            says(optimizer.step(&mut [&mut a, &mut computed]), &["parameter 1"]);
            assert!(a.grad().is_some());
            optimizer.step(&mut [&mut a, &mut b]).unwrap();
            twin.step(&mut [&mut c, &mut d]).unwrap();
            assert_eq!((values(&a), values(&b)), (values(&c), values(&d)));
        }
    }
}

#[test]
fn an_integer_cannot_become_a_parameter_at_all() {
    says(of(DType::I64, &[1.0]).requiring_grad(), &["floating-point", "got i64"]);
}
