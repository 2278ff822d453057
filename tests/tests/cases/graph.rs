//! A9: a backward that silently does not run, or whose result is dropped.

use std::sync::Arc;

use gradpact::prelude::*;

use crate::support::{Custom, FLOATS, grad, leaf, of, options, scalar, values};

/// Rounds, and has no derivative.
#[autograd_function(out = f32, grad = none)]
struct Snap;

impl Op for Snap {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        x.cast::<i32>()?.cast()
    }

    fn backward(&self, _: &Context, (): ()) -> Result<Value<f32>> {
        Err(Error::custom("has no derivative"))
    }
}

#[test]
fn o_43_a_gradient_that_cannot_get_through_is_an_error_that_names_the_function() {
    let x = Tensor::<f32>::ones([2]).unwrap().requiring_grad().unwrap();
    let snapped: Tensor<f32, NoGrad> = Snap.apply(&x.mul_scalar(2.0).unwrap()).unwrap();
    let loss = snapped.as_dyn().mul_scalar(3.0).unwrap().sum().unwrap();
    let error = loss.backward().unwrap_err().to_string();
    assert!(error.contains("output 0 of `Snap` is not differentiable"), "{error}");

    // Also where the loss has another way to a leaf.
    let w = leaf(DType::F32, &[1.0, 1.0]);
    let loss = snapped.as_dyn().mul(&w).unwrap().sum().unwrap();
    let error = gradpact::grad(&[(&loss, None)], &[x.as_dyn()], options()).unwrap_err().to_string();
    assert!(error.contains("input 0 of `grad`") && error.contains("output 0 of `Snap`"), "{error}");
    loss.backward().unwrap();
    assert_eq!(grad(&w), (DType::F32, vec![2.0, 2.0]));
    assert!(x.grad().is_none());
}

#[test]
fn o_43_every_way_of_cutting_a_graph_says_where_it_was_cut() {
    let x = leaf(DType::F32, &[1.0]);
    let marked = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.mark_non_differentiable(&[0]);
        Ok(inputs.get(0)?.mul_scalar(1.0)?.into())
    };
    let cuts: [(&str, DynTensor); 4] = [
        ("output 0 of `Marked`", Custom::new("Marked", marked, |_, grads| Ok(grads)).on(&[&x])),
        ("`detach` was called", x.detach()),
        ("`no_grad`", no_grad(|| x.neg().unwrap())),
        ("`Cast`", x.cast(DType::I32).unwrap().cast(DType::F32).unwrap()),
    ];
    for (words, cut) in cuts {
        let error = cut.exp().unwrap().sum().unwrap().backward().unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// Returns its input; its backward is another matter.
#[autograd_function(out = f32)]
struct Identity;

impl Op for Identity {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        Ok(x)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul_scalar(666.0)
    }
}

#[test]
fn o_44_a_function_that_returns_its_input_still_has_its_own_backward() {
    let x = Tensor::<f32>::scalar(1.0).requiring_grad().unwrap();
    Identity.apply(&x).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 666.0);
    x.zero_grad();
    Identity.apply(&x.add_scalar(1.0).unwrap()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 666.0);

    for dtype in FLOATS {
        for nonleaf in [false, true] {
            let x = leaf(dtype, &[1.0]);
            let input = if nonleaf { x.add_scalar(0.0).unwrap() } else { x.clone() };
            let same = |_: &mut Context, inputs: &Inputs<'_>| Ok(inputs.get(0)?.clone().into());
            let twice =
                |_: &Context, grads: Gradients| Ok(grads[0].as_ref().unwrap().mul_scalar(2.0)?.into());
            let y = Custom::new("Same", same, twice).on(&[&input]);
            assert_eq!(values(&y), [1.0]);
            y.sum().unwrap().backward().unwrap();
            assert_eq!(grad(&x), (dtype, vec![2.0]), "also for the input as it is, non-leaf: {nonleaf}");
        }
    }
}

/// sin x, whose backward is wrong on purpose.
#[autograd_function(out = f32)]
#[derive(Clone)]
struct OddSine;

impl Op for OddSine {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        x.sin()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul_scalar(7.0)
    }
}

#[test]
fn o_45_the_written_backward_is_what_runs_on_every_path() {
    let x = Tensor::<f32>::scalar(0.3).requiring_grad().unwrap();
    let gradient = |x: &Tensor<f32>| {
        x.zero_grad();
        OddSine.apply(x).unwrap().backward().unwrap();
        x.grad().unwrap().item().unwrap()
    };
    assert_eq!(gradient(&x), 7.0);
    // In another thread, forward and backward; and backward alone.
    let moved = x.clone();
    assert_eq!(std::thread::spawn(move || gradient(&moved)).join().unwrap(), 7.0);
    x.zero_grad();
    let y = OddSine.apply(&x).unwrap();
    std::thread::spawn(move || y.backward().unwrap()).join().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 7.0);
    // Shared, through the dynamic layer.
    let shared = Arc::new(OddSine);
    x.zero_grad();
    let forward = {
        let shared = Arc::clone(&shared);
        move |ctx: &mut Context, inputs: &Inputs<'_>| Function::forward(&*shared, ctx, inputs)
    };
    let y = Custom::new("Shared", forward, move |ctx, grads| Function::backward(&*shared, ctx, grads));
    y.on(&[x.as_dyn()]).backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 7.0);
    // Checkpointed.
    x.zero_grad();
    let inside = x.clone();
    gradpact::autograd::checkpoint(move || OddSine.apply(&inside)).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 7.0);
    // The first derivative of a second-order computation, and through itself.
    let seed = scalar(DType::F32, 1.0).requiring_grad().unwrap();
    let y = OddSine.apply(&x).unwrap();
    let first =
        gradpact::grad(&[(y.as_dyn(), Some(&seed))], &[x.as_dyn()], options().create_graph()).unwrap();
    let first = first[0].as_ref().unwrap();
    assert_eq!(values(first), [7.0]);
    let second = gradpact::grad(&[(first, None)], &[&seed], options()).unwrap();
    assert_eq!(values(second[0].as_ref().unwrap()), [7.0], "d(7·g)/dg");
}

#[test]
fn o_46_a_value_that_lost_its_gradient_by_a_change_of_kind_says_so() {
    for dtype in FLOATS {
        let x = leaf(dtype, &[1.0, 4.0, 2.0]);
        let index = x.argmax(None, false).unwrap();
        assert_eq!((index.dtype(), values(&index)), (DType::I64, vec![1.0]));
        let position = index.cast(dtype).unwrap();
        assert!(!position.requires_grad());
        let error = position.backward().unwrap_err().to_string();
        assert!(error.contains("not differentiable"), "{error}");
        let loss = x.sum().unwrap().add(&position).unwrap();
        loss.backward().unwrap();
        assert_eq!(grad(&x), (dtype, vec![1.0; 3]), "from x alone");
        let one_hot = index.one_hot(3, dtype).unwrap();
        assert!(!one_hot.requires_grad());
        x.zero_grad();
        x.mul(&one_hot).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(grad(&x), (dtype, vec![0.0, 1.0, 0.0]));
    }
    assert!(of(DType::I64, &[1.0]).requiring_grad().is_err());
}

#[test]
fn a_backward_that_records_nothing_leaves_numbers_without_a_graph_also_of_a_tracked_seed() {
    // As PyTorch, whose `AccumulateGrad` detaches where grad mode is off. A leaf that is its own seed would hold itself.
    let x = leaf(DType::F32, &[2.0, 3.0]);
    let y = x.with_grad_dtype(GradDType::Exactly(DType::F32)).unwrap();
    y.retain_grad().unwrap();
    y.backward_with(&x, options().retain_graph()).unwrap();
    for tensor in [&x, &y] {
        assert_eq!(grad(tensor), (DType::F32, vec![2.0, 3.0]));
        assert!(!tensor.grad().unwrap().requires_grad());
    }
    let error = x.grad().unwrap().sum().unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("without `create_graph`"), "{error}");
    x.zero_grad();
    y.backward_with(&x, options().create_graph()).unwrap();
    assert!(x.grad().unwrap().requires_grad(), "a recorded one has a graph");
    x.zero_grad();
    y.zero_grad();
}
