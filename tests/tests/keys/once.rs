//! `once`, and `Context::mark_once_differentiable`.

use std::sync::Arc;

use gradpact::prelude::*;

use crate::{grad, leaf, of, options, says};

/// x², differentiable once; its backward may do anything with values.
#[autograd_function(out = f32, once)]
struct Square {
    #[expect(dead_code, reason = "held by the graph as long as the graph lives")]
    held: Arc<()>,
}

impl Op for Square {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        ctx.save_for_backward(&x);
        x.mul(&x)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        let twice = x.add(&x)?;
        assert!(!twice.requires_grad(), "nothing in it is recorded");
        // Through numbers, where no operation could have been recorded.
        let slope = Value::from_vec(twice.to_vec()?, [1])?;
        grad.mul(&slope)
    }
}

fn square(x: &Tensor<f32>) -> DynTensor {
    Square { held: Arc::default() }.apply(x).unwrap().into_dyn()
}

/// The gradient of `y` with respect to `x`, with a graph.
fn recorded(y: &DynTensor, seed: Option<&DynTensor>, x: &Tensor<f32>) -> DynTensor {
    gradpact::grad(&[(y, seed)], &[x.as_dyn()], options().create_graph()).unwrap().remove(0).unwrap()
}

#[track_caller]
fn refuses_twice(result: Result<impl Sized>, function: &str) {
    let Err(error) = result else { panic!("there is no second derivative") };
    assert!(matches!(error.root(), Error::DifferentiableOnce(_)), "{error}");
    says(&error, &[&format!("`{function}` is differentiable only once"), "second derivative"]);
}

#[test]
fn first_derivatives_are_as_without_it() {
    for options in [options(), options().retain_graph(), options().create_graph()] {
        let x = leaf(&[3.0]);
        square(&x).backward_opts(options).unwrap();
        assert_eq!(grad(&x), [6.0]);
        x.zero_grad();
    }
}

#[test]
fn a_second_derivative_is_an_error_that_names_the_function() {
    let x = leaf(&[3.0]);
    let first = recorded(&square(&x), None, &x);
    assert_eq!(first.item::<f32>().unwrap(), 6.0);
    refuses_twice(first.backward_opts(options().retain_graph()), "Square");
    refuses_twice(gradpact::grad(&[(&first, None)], &[x.as_dyn()], options()), "Square");
    assert!(x.grad().is_none());
}

#[test]
fn it_is_an_error_and_not_a_smaller_number_where_other_terms_have_a_second_derivative() {
    let x = leaf(&[3.0]);
    // x² + x³: a gradient that took the first term for a constant would be 18, and wrong.
    let cube = x.mul(&x).unwrap().mul(&x).unwrap();
    let first = recorded(&square(&x).add(cube.as_dyn()).unwrap(), None, &x);
    assert_eq!(first.item::<f32>().unwrap(), 6.0 + 27.0);
    refuses_twice(first.backward(), "Square");
}

#[test]
fn second_derivatives_that_do_not_go_through_it_are_as_without_it() {
    let (a, b) = (leaf(&[3.0]), leaf(&[2.0]));
    let cube = b.mul(&b).unwrap().mul(&b).unwrap();
    let loss = square(&a).add(cube.as_dyn()).unwrap();
    let first = recorded(&loss, None, &b);
    first.backward().unwrap();
    assert_eq!(grad(&b), [12.0], "6b");
}

#[test]
fn a_tracked_seed_is_led_to_as_well() {
    let x = leaf(&[3.0]);
    let seed = leaf(&[0.5]);
    let y = square(&x);
    let first = recorded(&y, Some(seed.as_dyn()), &x);
    assert_eq!(first.item::<f32>().unwrap(), 3.0);
    refuses_twice(gradpact::grad(&[(&first, None)], &[seed.as_dyn()], options()), "Square");
}

/// 3x, differentiable once; it saves nothing.
#[autograd_function(out = f32, once)]
struct Triple;

impl Op for Triple {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        x.mul_scalar(3.0)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul_scalar(3.0)
    }
}

#[test]
fn where_nothing_that_backward_used_is_tracked_its_result_is_a_constant() {
    let x = leaf(&[2.0]);
    let first = recorded(Triple.apply(&x).unwrap().as_dyn(), None, &x);
    assert!(!first.requires_grad());
    // 3 + x², whose derivative is 2x.
    first.add(x.mul(&x).unwrap().as_dyn()).unwrap().backward().unwrap();
    assert_eq!(grad(&x), [4.0]);
    // A tracked seed makes it depend on something.
    let seed = leaf(&[1.0]);
    let first = recorded(Triple.apply(&x).unwrap().as_dyn(), Some(seed.as_dyn()), &x);
    refuses_twice(first.backward(), "Triple");
}

#[test]
fn the_error_holds_nothing_alive_in_a_circle() {
    let held = Arc::new(());
    let x = leaf(&[3.0]);
    let y = Square { held: Arc::clone(&held) }.apply(&x).unwrap().into_dyn();
    let first = recorded(&y, None, &x);
    assert!(Arc::strong_count(&held) > 1);
    drop((y, first));
    assert_eq!(Arc::strong_count(&held), 1);
}

/// What a dynamic Function saves.
#[derive(Clone, Copy, Debug)]
enum Save {
    Output,
    Intermediate,
    Nothing,
}

/// eˣ and x, differentiable once. Its second input is not used.
struct Exp(Save);

impl Function for Exp {
    fn name(&self) -> &'static str {
        "Exp"
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        ctx.mark_once_differentiable();
        let x = inputs.get(0)?;
        let (inner, y) = (x.exp()?, x.exp()?);
        match self.0 {
            Save::Output => ctx.save_for_backward(&y),
            Save::Intermediate => ctx.save_for_backward(&inner),
            Save::Nothing => {}
        }
        Ok([y, x.mul_scalar(1.0)?].into())
    }

    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
        let [Some(y), Some(x)] = [grads[0].as_ref(), grads[1].as_ref()] else { panic!("zeros stand in") };
        let slope = match self.0 {
            Save::Nothing => x.mul_scalar(1.0)?,
            _ => y.mul(ctx.saved_tensor(0)?)?.add(x)?,
        };
        Ok([Some(slope), None].into())
    }
}

#[test]
fn the_dynamic_call_does_the_same_whatever_was_saved() {
    for save in [Save::Output, Save::Intermediate] {
        let x = leaf(&[0.0]);
        let other = of(DType::F32, &[1.0]);
        let y = apply(Exp(save), &[x.as_dyn(), &other]).unwrap();
        let first = recorded(&y[0], None, &x);
        assert_eq!(first.item::<f32>().unwrap(), 1.0, "{save:?}: e⁰");
        refuses_twice(gradpact::grad(&[(&first, None)], &[x.as_dyn()], options()), "Exp");
        y[0].backward().unwrap();
        assert_eq!(grad(&x), [1.0], "{save:?}");
    }
    let x = leaf(&[0.0]);
    let y = apply(Exp(Save::Nothing), &[x.as_dyn(), x.detach().as_dyn()]).unwrap();
    assert!(!recorded(&y[1], None, &x).requires_grad());
}

/// Marks itself in forward, under an attribute that says the same or nothing.
macro_rules! marking {
    ($($name:ident: $($key:ident)?;)*) => {$(
        #[autograd_function(out = f32 $(, $key)?)]
        struct $name;

        impl Op for $name {
            type Inputs = Tensor<f32>;

            fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
                ctx.mark_once_differentiable();
                ctx.save_for_backward(&x);
                x.mul(&x)
            }

            fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
                grad.mul(&ctx.saved()?)?.mul_scalar(2.0)
            }
        }
    )*};
}
marking! { Twice: once; Open: ; }

#[test]
fn under_the_attribute_forward_may_mark_it_where_the_key_has_not() {
    let x = leaf(&[3.0]);
    let error = Twice.apply(&x).unwrap_err();
    says(&error, &["forward of `Twice`", "`mark_once_differentiable`", "change its `once`"]);
    let first = recorded(Open.apply(&x).unwrap().as_dyn(), None, &x);
    refuses_twice(first.backward(), "Open");
}
