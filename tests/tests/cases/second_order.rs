//! A12 and A13: double backward, and values that are saved.

use std::sync::Arc;

use gradpact::prelude::*;

use crate::support::{Custom, FLOATS, grad, leaf, leaf_in, of, options, values};

/// The first and second derivative of `f` at `x`.
fn derivatives(x: &DynTensor, f: impl FnOnce(&DynTensor) -> DynTensor) -> [(DType, Vec<f64>); 2] {
    let first = gradpact::grad(&[(&f(x), None)], &[x], options().create_graph()).unwrap().remove(0).unwrap();
    let second = gradpact::grad(&[(&first, None)], &[x], options()).unwrap().remove(0).unwrap();
    [first, second].map(|grad| (grad.dtype(), values(&grad)))
}

#[test]
fn o_54_second_derivatives_come_in_the_same_dtypes_as_first_ones() {
    for storage in FLOATS {
        for gradient in FLOATS {
            let x = leaf_in(storage, gradient, &[3.0]);
            for out in [DType::F32, DType::F16, DType::F64] {
                let square = |x: &DynTensor| x.cast(out).unwrap().mul(&x.cast(out).unwrap()).unwrap();
                let expected = [(gradient, vec![6.0]), (gradient, vec![2.0])];
                assert_eq!(derivatives(&x, square), expected, "{storage}, {gradient}, {out}");
            }
        }
    }
    // Through a Function of one's own, which saves its input.
    for storage in FLOATS {
        let x = leaf(storage, &[3.0]);
        let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
            ctx.save_for_backward(inputs.get(0)?);
            let x = inputs.get(0)?.cast(DType::F32)?;
            Ok(x.mul(&x)?.into())
        };
        let backward = |ctx: &Context, grads: Gradients| {
            let twice = ctx.saved_tensor(0)?.cast(DType::F32)?.mul_scalar(2.0)?;
            Ok(grads[0].as_ref().unwrap().mul(&twice)?.into())
        };
        let square = |x: &DynTensor| Custom::new("Square", forward, backward).on(&[x]);
        assert_eq!(derivatives(&x, square), [(storage, vec![6.0]), (storage, vec![2.0])]);
    }
}

#[test]
fn derivatives_of_every_order_come_in_the_declared_dtype() {
    for gradient in [DType::F16, DType::F32, DType::F64] {
        let x = leaf_in(DType::F16, gradient, &[2.0]);
        let square = x.mul(&x).unwrap();
        let mut y = square.mul(&square).unwrap().cast(DType::F32).unwrap();
        for expected in [32.0, 48.0, 48.0, 24.0] {
            y = gradpact::grad(&[(&y, None)], &[&x], options().create_graph()).unwrap().remove(0).unwrap();
            assert_eq!((y.dtype(), values(&y)), (gradient, vec![expected]));
        }
    }
}

/// x³ by way of x², which it saves.
#[autograd_function(out = f32)]
struct Cube {
    save_intermediate: bool,
}

impl Op for Cube {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        let square = x.mul(&x)?;
        ctx.save_for_backward(if self.save_intermediate { &square } else { &x });
        square.mul(&x)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let saved: Value<f32> = ctx.saved()?;
        let square = if self.save_intermediate { saved } else { saved.mul(&saved)? };
        grad.mul(&square)?.mul_scalar(3.0)
    }
}

#[test]
fn o_55_a_saved_intermediate_is_an_error_in_a_second_derivative_and_not_a_number() {
    let x = Tensor::<f32>::scalar(2.0).requiring_grad().unwrap();
    let cube = |save_intermediate| Cube { save_intermediate }.apply(&x).unwrap().into_dyn();
    for save_intermediate in [false, true] {
        x.zero_grad();
        cube(save_intermediate).backward().unwrap();
        assert_eq!(x.grad().unwrap().item().unwrap(), 12.0, "the first derivative is right either way");
    }
    assert_eq!(derivatives(x.as_dyn(), |_| cube(false))[1].1, [12.0], "6x");
    let first = gradpact::grad(&[(&cube(true), None)], &[x.as_dyn()], options().create_graph()).unwrap();
    let first = first[0].as_ref().unwrap();
    let error = first.backward().unwrap_err().to_string();
    assert!(error.contains("`Cube` saved a value that is neither its input nor its output"), "{error}");
}

/// eˣ, which saves its output.
#[autograd_function(out = f32)]
struct Exp;

impl Op for Exp {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        let y = x.exp()?;
        ctx.save_for_backward(&y);
        Ok(y)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul(&ctx.saved::<Value<f32>>()?)
    }
}

/// 3x, which saves its input and computes with what it saved in every way that there is.
#[autograd_function(out = f32)]
struct Overwrites;

impl Op for Overwrites {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        ctx.save_for_backward(&x);
        x.mul_scalar(3.0)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let mut saved: Value<f32> = ctx.saved()?;
        for _ in 0..3 {
            saved = saved.mul_scalar(100.0)?.into_dyn().into_array().cast_back()?;
        }
        drop(saved);
        grad.mul_scalar(3.0)
    }
}

/// A value made of an array that nobody else should hold.
trait CastBack {
    fn cast_back(self) -> Result<Value<f32>>;
}

impl CastBack for gradpact::cpu::Array {
    fn cast_back(self) -> Result<Value<f32>> {
        DynTensor::from_array(self).typed()
    }
}

#[test]
fn o_56_nothing_that_a_backward_does_changes_a_tensor_that_another_saved() {
    let x = Tensor::<f32>::scalar(0.0).requiring_grad().unwrap();
    let e = Exp.apply(&x).unwrap();
    Overwrites.apply(&e).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 3.0, "3 · e⁰: the saved output is still 1");
    assert_eq!(e.item().unwrap(), 1.0);
    // Accumulation in place does not touch a gradient that somebody holds either.
    let x = leaf(DType::F32, &[1.0]);
    let seed = of(DType::F32, &[1.0]);
    x.backward_with(&seed, options()).unwrap();
    let held = x.grad().unwrap();
    x.backward_with(&seed, options()).unwrap();
    assert_eq!((values(&seed), values(&held), grad(&x).1), (vec![1.0], vec![1.0], vec![2.0]));
}

#[test]
fn o_57_a_graph_that_saves_its_outputs_is_freed_with_them() {
    let alive = Arc::new(());
    let counting = || {
        let held = Arc::clone(&alive);
        let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
            let _ = &held;
            let x = inputs.get(0)?;
            let y = x.exp()?;
            ctx.save_for_backward([x, &y]);
            Ok(y.into())
        };
        Custom::new("Exp", forward, |ctx, grads| {
            Ok(grads[0].as_ref().unwrap().mul(ctx.saved_tensor(1)?)?.into())
        })
    };
    let x = leaf(DType::F32, &[0.0]);
    for round in 0..1000 {
        let y = counting().on(&[&x]);
        match round % 3 {
            // Dropped without a backward, after one, and after one that was itself recorded.
            0 => drop(y),
            1 => y.backward_with(&of(DType::F32, &[1.0]), options().retain_graph()).unwrap(),
            _ => drop(gradpact::grad(&[(&y, None)], &[&x], options().create_graph()).unwrap()),
        }
    }
    assert_eq!(Arc::strong_count(&alive), 1, "no node is left");
    // Typed, and in a chain.
    let typed = x.typed::<f32, f32>().unwrap();
    let chain = (0..10).fold(typed, |y, _| Exp.apply(&y).unwrap());
    let node = Arc::downgrade(chain.as_dyn().grad_fn().unwrap());
    drop(chain);
    assert_eq!(node.strong_count(), 0);
}

#[test]
fn a_second_derivative_flows_through_a_saved_integer_output_whose_gradient_is_declared() {
    // y = trunc(x), straight through; backward takes dy/dx = y for it, so dx = G·y and d(dx)/dx = G·dy/dx = G·y.
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
        let y = inputs.get(0)?.cast(DType::I8)?;
        ctx.save_for_backward(&y);
        Ok(y.into())
    };
    let backward = |ctx: &Context, grads: Gradients| {
        let y = ctx.saved_tensor(0)?;
        Ok(grads[0].as_ref().unwrap().mul(y)?.into())
    };
    let x = leaf(DType::F32, &[3.75]);
    let y = Custom::new("Truncate", forward, backward).on(&[&x]);
    let seed = of(DType::F32, &[1.0]);
    let first = gradpact::grad(&[(&y, Some(&seed))], &[&x], options().create_graph()).unwrap();
    let first = first[0].as_ref().unwrap();
    assert_eq!(values(first), [3.0]);
    let second = gradpact::grad(&[(first, None)], &[&x], options()).unwrap();
    assert_eq!(values(second[0].as_ref().unwrap()), [3.0], "through the saved output");
}

#[test]
fn a_saved_input_that_backward_returns_as_it_is_does_not_become_a_graph_of_the_leaf_that_keeps_it() {
    // ½x², whose gradient for a seed of one is x itself.
    let half_square = || {
        let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
            let x = inputs.get(0)?;
            ctx.save_for_backward(x);
            Ok(x.mul(x)?.mul_scalar(0.5)?.into())
        };
        Custom::new("HalfSquare", forward, |ctx, _| Ok(ctx.saved_tensor(0)?.clone().into()))
    };
    let x = leaf(DType::F32, &[3.0]);
    let y = x.mul_scalar(1.0).unwrap();
    y.retain_grad().unwrap();
    half_square().on(&[&y]).sum().unwrap().backward().unwrap();
    half_square().on(&[&x]).sum().unwrap().backward().unwrap();
    let leaf_node = Arc::downgrade(x.grad_fn().unwrap());
    let y_node = Arc::downgrade(y.grad_fn().unwrap());
    for kept in [&x, &y] {
        let grad = kept.grad().unwrap();
        assert!(!grad.requires_grad(), "nothing was recorded");
        let error = grad.sum().unwrap().backward().unwrap_err().to_string();
        assert!(error.contains("in a backward without `create_graph`"), "{error}");
    }
    drop((x, y));
    assert_eq!((leaf_node.strong_count(), y_node.strong_count()), (0, 0));
}
