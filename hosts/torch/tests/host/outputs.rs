//! Outputs that the forward did not make itself, or not for the node alone, and stored tensors that lead to other nodes.

use std::sync::{Arc, Mutex};

use gradpact::prelude::*;
use gradpact_torch::{FromTch, Torch};
use tch::Kind;

use crate::support::{Dyn, array, backward, call, leaf, read, values};

type Forward = dyn Fn(&mut Context<Torch>, &Dyn) -> Result<Vec<Dyn>> + Send + Sync;

/// Runs a forward of the test's, and passes the last gradient on.
#[derive(Clone)]
struct Returns(Arc<Forward>);

impl Returns {
    fn new(forward: impl Fn(&mut Context<Torch>, &Dyn) -> Result<Vec<Dyn>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(forward))
    }
}

impl Function<Torch> for Returns {
    fn name(&self) -> &'static str {
        "Returns"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        (self.0)(ctx, inputs.get(0)?).map(Outputs::from)
    }

    fn backward(&self, ctx: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        let grad = grads.last().cloned().flatten().unwrap();
        let saved = ctx.saved_tensors()?.first();
        Ok(saved.map_or_else(|| grad.clone(), |saved| array(&**grad.array() * &**saved.array())).into())
    }
}

#[test]
fn a_tensor_that_the_function_keeps_is_returned_as_an_alias_and_stays_out_of_the_graph() {
    let constant = array(values(&[5.0], Kind::Float));
    let kept = constant.clone();
    let function = Returns::new(move |_, _| Ok(vec![kept.clone()]));
    let (a, b) = (leaf(&[1.0], Kind::Float), leaf(&[1.0], Kind::Float));
    let ya = call(function.clone(), &[&a]).unwrap().remove(0);
    let _yb = call(function.clone(), &[&b]).unwrap().remove(0);
    backward(&ya).unwrap();
    assert_eq!((a.grad().defined(), b.grad().defined()), (true, false));
    assert!(!constant.array().requires_grad());
    drop(ya);
    let alive = Arc::downgrade(&function.0);
    drop((function, _yb));
    assert!(alive.upgrade().is_none(), "nothing holds itself");
}

#[test]
fn threads_that_share_a_kept_output_do_not_share_a_graph() {
    let kept = array(values(&[5.0], Kind::Float));
    let function = Returns::new(move |_, _| Ok(vec![kept.clone()]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let x = leaf(&[1.0], Kind::Float);
                    let y = call(function.clone(), &[&x]).unwrap().remove(0);
                    backward(&y).unwrap();
                    assert_eq!(read(&x.grad()), [1.0]);
                }
            });
        }
    });
}

#[test]
fn a_leaf_that_a_forward_captured_and_returns_stays_a_leaf() {
    let w = leaf(&[2.0], Kind::Float);
    let captured = Dyn::from_tch(w.shallow_clone()).unwrap();
    let function = Returns::new(move |_, _| Ok(vec![captured.clone()]));
    let y = call(function, &[&leaf(&[1.0], Kind::Float)]).unwrap().remove(0);
    assert!(w.is_leaf() && !y.is_leaf());
}

#[test]
fn a_stored_output_does_not_hold_its_own_graph() {
    let alive = {
        let function = Returns::new(|ctx, x| {
            let y = array(&**x.array() * 1.0);
            ctx.store(y.clone());
            Ok(vec![y])
        });
        let alive = Arc::downgrade(&function.0);
        drop(call(function, &[&leaf(&[1.0], Kind::Float)]).unwrap());
        alive
    };
    assert!(alive.upgrade().is_none());
}

#[test]
fn a_non_differentiable_view_of_an_input_requires_no_gradient() {
    let function = Returns::new(|ctx, x| {
        ctx.mark_non_differentiable(&[0]);
        Ok(vec![array(x.array().view([-1])), array(&**x.array() * 1.0)])
    });
    let outputs = call(function, &[&leaf(&[1.0, 2.0], Kind::Float)]).unwrap();
    assert_eq!(outputs.iter().map(tch::Tensor::requires_grad).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_saved_output_that_is_returned_twice_is_the_one_that_has_a_gradient() {
    // y = 2x twice, the first without a gradient; `grad · y` for a backward, so that its derivative is not a constant.
    let function = Returns::new(|ctx, x| {
        ctx.mark_non_differentiable(&[0]);
        let y = array(&**x.array() * 2.0);
        ctx.save_for_backward(&y);
        Ok(vec![y.clone(), y])
    });
    let x = leaf(&[1.0, 2.0], Kind::Float);
    let root = call(function, &[&x]).unwrap().remove(1).sum(Kind::Float);
    let options = BackwardOptions::new().create_graph();
    let first = gradpact_torch::grad(&[(&root, None)], &[&x], options).unwrap().remove(0).unwrap();
    assert_eq!(read(&first), [2.0, 4.0]);
    assert!(first.requires_grad(), "it depends on the saved output");
}

#[test]
fn a_long_chain_of_stored_tensors_is_dropped_on_a_small_stack() {
    let chain = || {
        let mut y = leaf(&[1.0], Kind::Float);
        let function = Returns::new(|ctx, x| {
            ctx.store(x.clone());
            Ok(vec![array(&**x.array() * 1.0)])
        });
        for _ in 0..30_000 {
            y = call(function.clone(), &[&y]).unwrap().remove(0);
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(chain).unwrap().join().unwrap();
}

#[test]
fn a_conversion_to_its_own_dtype_widens_a_narrower_gradient_as_its_type_says() {
    let x = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.0], Kind::Float)).unwrap();
    let narrow: Tensor<f32, f16, Torch> = x.narrow_grad::<f16>().unwrap();
    let wide: Tensor<f32, f32, Torch> = narrow.cast::<f32>().unwrap();
    assert_eq!(gradpact_torch::grad_dtype(&wide).unwrap(), Some(GradDType::Exactly(DType::F32)));
}

#[test]
fn a_gradient_is_assigned_to_leaves_only_and_never_the_leaf_to_itself() {
    let x = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.0], Kind::Float)).unwrap();
    assert!(matches!(x.set_grad(Some(&x.value())), Err(Error::OwnGrad)));
    let constant = Tensor::<f32, f32, Torch>::from_tch(values(&[1.0], Kind::Float)).unwrap();
    let grad = Value::<f32, Torch>::from_tch(values(&[1.0], Kind::Float)).unwrap();
    assert!(matches!(constant.set_grad(Some(&grad)), Err(Error::NotALeaf { .. })));
    assert!(gradpact_torch::set_grad_dtype(&values(&[1.0], Kind::Int64), GradDType::Any).is_err());
}

#[test]
fn nothing_to_differentiate_is_an_error_and_no_inputs_are_no_gradients() {
    let message = gradpact_torch::backward(&[], BackwardOptions::new()).unwrap_err().to_string();
    assert!(message.contains("no roots"), "{message}");
    let x = leaf(&[1.0], Kind::Float);
    assert!(gradpact_torch::grad(&[(&x, None)], &[], BackwardOptions::new()).unwrap().is_empty());
}

#[test]
fn a_panic_in_forward_is_dropped_with_its_payload() {
    let counted = Arc::new(Mutex::new(()));
    let held = counted.clone();
    let function = Returns::new(move |_, _| std::panic::panic_any(held.clone()));
    for _ in 0..3 {
        assert!(call(function.clone(), &[&leaf(&[1.0], Kind::Float)]).is_err());
    }
    drop(function);
    assert_eq!(Arc::strong_count(&counted), 1);
}
