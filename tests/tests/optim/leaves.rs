//! What a step leaves in a variable: a leaf with the contract, the hooks and the metadata of the one before.

use std::sync::{Arc, Mutex};

use gradpact::GradDType::{Any, Exactly};
use gradpact::Source;
use gradpact::autograd::{NodeRef, node_creation_hook};
use gradpact::optim::{Adam, Optimizer, Parameter, Sgd, zero_grad};
use gradpact::prelude::*;

use crate::support::{FLOATS, every_optimizer, of, parameter, send, values};

fn plain() -> Optimizer<Sgd> {
    Optimizer::new(Sgd::new(1.0)).unwrap()
}

#[test]
fn a_step_keeps_the_gradient_dtype_declared_or_default_and_uses_the_gradient_up() {
    for dtype in FLOATS {
        let default = of(dtype, &[1.0]).requiring_grad().unwrap();
        let any = of(dtype, &[1.0]).requiring_grad_in(Any).unwrap();
        let declared = FLOATS.map(|grad| parameter(dtype, grad, &[1.0]));
        for param in [default, any].iter().chain(&declared) {
            let (mut param, before) = (param.clone(), param.clone());
            send(&param, &[0.5]);
            for mut optimizer in every_optimizer(true) {
                optimizer.step(&mut [&mut param]).unwrap();
            }
            assert_ne!(values(&param), [1.0]);
            assert!(param.is_leaf() && param.requires_grad() && param.grad().is_none());
            assert_eq!((param.dtype(), param.shape()), (before.dtype(), before.shape()));
            assert_eq!(param.grad_dtype(), before.grad_dtype());
            assert_eq!(param.grad_dtype_source(), before.grad_dtype_source());
            assert_eq!(values(&before), [1.0], "tensors are immutable");
        }
    }
}

#[test]
fn typed_and_dynamic_parameters_of_all_kinds_take_part_in_one_step() {
    let mut half = Tensor::<f16, f32>::ones([2]).unwrap().requiring_grad().unwrap();
    let mut double = Tensor::<f64>::ones([]).unwrap().requiring_grad().unwrap();
    let mut any: Tensor<f16, AnyGrad> =
        of(DType::F16, &[1.0]).requiring_grad_in(Any).unwrap().typed().unwrap();
    let mut dynamic = parameter(DType::BF16, DType::F32, &[1.0]);
    let mut model: Vec<Tensor<f32>> =
        (0..2).map(|_| Tensor::ones([1]).unwrap().requiring_grad().unwrap()).collect();
    for param in [half.as_dyn(), double.as_dyn(), any.as_dyn(), &dynamic] {
        send(param, &vec![0.25; param.shape().element_count()]);
    }
    model.iter().for_each(|param| send(param.as_dyn(), &[0.25]));
    let mut params: Vec<&mut dyn Parameter> = vec![&mut half, &mut double, &mut any, &mut dynamic];
    params.extend(model.iter_mut().map(|param| -> &mut dyn Parameter { param }));
    plain().step(&mut params).unwrap();
    assert!(params.iter().all(|param| values(param.as_dyn())[0] == 0.75));
    assert_eq!(half.to_vec().unwrap(), [f16::from_f32(0.75); 2]);
    half.cast::<f32>().unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(half.grad().unwrap().to_vec().unwrap(), [1.0_f32; 2]);
}

#[test]
fn a_gradient_dtype_that_was_changed_on_the_leaf_is_kept() {
    let mut param = parameter(DType::F16, DType::F16, &[1.0]);
    param.set_grad_dtype(Exactly(DType::F32)).unwrap();
    send(&param, &[1e-8]);
    Optimizer::new(Sgd::new(5e7)).unwrap().step(&mut [&mut param]).unwrap();
    assert_eq!(values(&param), [0.5]);
    assert_eq!(param.grad_dtype(), Some(Exactly(DType::F32)));
    assert_eq!(param.grad_dtype_source(), Some(Source::Declared));
}

#[test]
fn a_parameter_without_a_gradient_is_skipped_and_its_steps_are_not_counted() {
    let (mut given, mut waiting) =
        (parameter(DType::F64, DType::F64, &[0.0]), parameter(DType::F64, DType::F64, &[0.0]));
    let untouched = waiting.clone();
    let mut optimizer = Optimizer::new(Adam::new(0.125)).unwrap();
    for _ in 0..3 {
        send(&given, &[1.0]);
        optimizer.step(&mut [&mut given, &mut waiting]).unwrap();
        assert_eq!(values(&waiting), [0.0]);
    }
    send(&untouched, &[1.0]);
    assert!(waiting.grad().is_some(), "it is the same leaf");
    optimizer.step(&mut [&mut given, &mut waiting]).unwrap();
    let first_step = -0.125 / (1.0 + 1e-8);
    assert!((values(&waiting)[0] - first_step).abs() < 1e-15);
    assert!(values(&given)[0] < -0.3);
}

#[test]
fn without_any_gradient_a_step_changes_nothing() {
    let mut param = parameter(DType::F32, DType::F32, &[1.0]);
    let before = param.clone();
    plain().step(&mut [&mut param]).unwrap();
    send(&before, &[1.0]);
    assert!(param.grad().is_some() && values(&param) == [1.0]);
}

#[test]
fn hooks_move_along_and_their_handles_still_remove_them() {
    let mut param = Tensor::<f16, f32>::ones([1]).unwrap().requiring_grad().unwrap();
    let halved = param.as_dyn().register_hook(|grad| grad.mul_scalar(0.5).map(Some)).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let note = move |leaf: &DynTensor| {
        noted.lock().unwrap().push((values(leaf)[0], values(&leaf.grad().unwrap())[0]));
        Ok(())
    };
    param.as_dyn().register_post_accumulate_grad_hook(note).unwrap();
    let mut optimizer = Optimizer::new(Sgd::new(0.25)).unwrap();
    for _ in 0..2 {
        send(param.as_dyn(), &[1.0]);
        optimizer.step(&mut [&mut param]).unwrap();
    }
    halved.remove();
    send(param.as_dyn(), &[1.0]);
    assert_eq!(*seen.lock().unwrap(), [(1.0, 0.5), (0.875, 0.5), (0.75, 1.0)]);
}

#[test]
fn a_hook_registered_on_the_new_leaf_is_one_of_the_old_too() {
    let mut param = parameter(DType::F32, DType::F32, &[1.0]);
    param.register_hook(|_| Ok(None)).unwrap();
    let before = param.clone();
    send(&param, &[1.0]);
    plain().step(&mut [&mut param]).unwrap();
    param.register_hook(|grad| grad.mul_scalar(3.0).map(Some)).unwrap();
    before.zero_grad();
    send(&before, &[1.0]);
    assert_eq!(values(&before.grad().unwrap()), [3.0]);
}

#[test]
fn metadata_moves_along() {
    let mut param = parameter(DType::F32, DType::F32, &[1.0]);
    param.grad_fn().unwrap().set_metadata("layer", 7_u32);
    send(&param, &[1.0]);
    plain().step(&mut [&mut param]).unwrap();
    assert_eq!(param.grad_fn().unwrap().metadata::<u32>("layer").as_deref(), Some(&7));
}

#[test]
fn creation_hooks_are_shown_a_parameter_once_and_not_at_every_step() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&shown);
    let note = move |node: &NodeRef<gradpact::Cpu>| {
        noted.lock().unwrap().push(node.name());
        Ok(())
    };
    node_creation_hook(note, || {
        let mut param = parameter(DType::F32, DType::F32, &[1.0]);
        for _ in 0..2 {
            send(&param, &[1.0]);
            plain().step(&mut [&mut param]).unwrap();
        }
    });
    assert_eq!(*shown.lock().unwrap(), ["AccumulateGrad"]);
}

#[test]
fn a_step_works_under_no_grad_and_records_nothing() {
    let mut param = parameter(DType::F32, DType::F32, &[2.0]);
    param.mul(&param).unwrap().sum().unwrap().backward_opts(BackwardOptions::new().create_graph()).unwrap();
    assert!(param.grad().unwrap().requires_grad());
    no_grad(|| plain().step(&mut [&mut param])).unwrap();
    assert!(param.is_leaf() && param.requires_grad());
    assert_eq!(values(&param), [-2.0]);
}

#[test]
fn zero_grad_forgets_the_gradients_of_all() {
    let mut params = [1.0, 2.0].map(|value| parameter(DType::F32, DType::F32, &[value]));
    params.iter().for_each(|param| send(param, &[1.0]));
    let [a, b] = &mut params;
    zero_grad(&mut [a, b]);
    assert!(params.iter().all(|param| param.grad().is_none() && param.requires_grad()));
}

#[test]
fn the_learning_rate_changes_between_steps() {
    let mut param = parameter(DType::F32, DType::F32, &[0.0]);
    let mut optimizer = plain();
    for (lr, expected) in [(1.0, -1.0), (0.25, -1.25), (0.0, -1.25)] {
        optimizer.set_lr(lr).unwrap();
        assert_eq!(optimizer.lr(), lr);
        send(&param, &[1.0]);
        optimizer.step(&mut [&mut param]).unwrap();
        assert_eq!(values(&param), [expected]);
    }
}
