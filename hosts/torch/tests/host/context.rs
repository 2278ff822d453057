//! Everything of a context: saved tensors, inputs whose gradient is wanted, keys of the attribute.

use std::sync::{Arc, Mutex};

use gradpact::Policy;
use gradpact::prelude::*;
use gradpact_torch::{Torch, TorchError};
use tch::Kind;

use crate::support::{Sends, array, backward, call, leaf, read, values};

/// `Σ xᵢ²`-like: saves input and output, and says which gradients were wanted.
#[derive(Clone, Default)]
struct Square {
    once: bool,
    stored: bool,
    wanted: Arc<Mutex<Vec<bool>>>,
}

impl Function<Torch> for Square {
    fn name(&self) -> &'static str {
        "Square"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        if self.once {
            ctx.mark_once_differentiable();
        }
        if self.stored {
            ctx.store(2.0_f64);
        }
        let (x, other) = (inputs.get(0)?, inputs.get(1)?);
        let y = array(&**x.array() * &**x.array() + &**other.array());
        ctx.save_for_backward([x, &y]);
        Ok(y.into())
    }

    fn backward(&self, ctx: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        *self.wanted.lock().unwrap() = (0..3).map(|input| ctx.needs_input_grad(input)).collect();
        let factor = ctx.stored::<f64>().copied().unwrap_or(2.0);
        let (x, y) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        assert_eq!(x.shape(), y.shape());
        let grad = grads[0].clone().unwrap();
        let for_x = &**grad.array() * &**x.array() * factor;
        Ok([Some(array(for_x)), Some(grad)].into_iter().collect())
    }
}

#[test]
fn saved_input_and_output_and_a_stored_value_come_back() {
    let (x, other) = (leaf(&[3.0], Kind::Float), values(&[1.0], Kind::Float));
    let function = Square { stored: true, ..Square::default() };
    let y = call(function.clone(), &[&x, &other]).unwrap().remove(0);
    assert_eq!(read(&y), [10.0]);
    backward(&y).unwrap();
    assert_eq!(read(&x.grad()), [6.0]);
    assert_eq!(*function.wanted.lock().unwrap(), [true, false, false]);
}

#[test]
fn only_the_gradients_that_a_call_asks_for_are_wanted() {
    let (x, other) = (leaf(&[3.0], Kind::Float), leaf(&[1.0], Kind::Float));
    let function = Square::default();
    let y = call(function.clone(), &[&x, &other]).unwrap().remove(0);
    let grads = gradpact_torch::grad(&[(&y, None)], &[&other], BackwardOptions::new()).unwrap();
    assert_eq!(read(grads[0].as_ref().unwrap()), [1.0]);
    assert_eq!(*function.wanted.lock().unwrap(), [false, true, false]);
}

#[test]
fn saved_tensors_are_freed_unless_the_graph_is_kept() {
    let (x, other) = (leaf(&[3.0], Kind::Float), leaf(&[1.0], Kind::Float));
    let y = call(Square::default(), &[&x, &other]).unwrap().remove(0);
    let keep = BackwardOptions::new().retain_graph();
    gradpact_torch::backward(&[(&y, None)], keep).unwrap();
    backward(&y).unwrap();
    assert_eq!(read(&x.grad()), [12.0]);
    let error = backward(&y).unwrap_err();
    assert!(matches!(error.root(), Error::SavedFreed(function) if function == "Square"), "{error}");
}

#[test]
fn a_saved_input_that_was_changed_in_place_is_noticed() {
    let (x, other) = (leaf(&[3.0], Kind::Float), values(&[1.0], Kind::Float));
    let mut middle = &x * 1.0;
    let y = call(Square::default(), &[&middle, &other]).unwrap().remove(0);
    let _ = middle.g_add_scalar_(1.0);
    let error = backward(&y).unwrap_err();
    let torch = error.downcast_ref::<TorchError>().unwrap();
    assert!(torch.message.contains("modified by an inplace operation"), "{error}");
    assert!(error.to_string().contains("`Square`"), "{error}");
}

#[test]
fn a_function_marked_once_has_a_first_derivative_and_an_error_for_the_second() {
    let (x, other) = (leaf(&[3.0], Kind::Float), values(&[1.0], Kind::Float));
    let y = call(Square { once: true, ..Square::default() }, &[&x, &other]).unwrap().remove(0);
    let create = BackwardOptions::new().create_graph();
    let first = gradpact_torch::grad(&[(&y, None)], &[&x], create).unwrap().remove(0).unwrap();
    assert_eq!(read(&first), [6.0]);
    let error = gradpact_torch::grad(&[(&first, None)], &[&x], create).unwrap_err();
    assert!(matches!(error.root(), Error::DifferentiableOnce(function) if function == "Square"), "{error}");
}

#[test]
fn nothing_is_recorded_where_nothing_is_wanted() {
    let (x, other) = (leaf(&[3.0], Kind::Float), values(&[1.0], Kind::Float));
    let unrecorded = tch::no_grad(|| call(Square::default(), &[&x, &other]).unwrap().remove(0));
    assert!(!unrecorded.requires_grad());
    let constant = call(Square::default(), &[&other, &other]).unwrap().remove(0);
    assert!(!constant.requires_grad());
    assert!(backward(&constant).is_err());
}

/// Returns its input as it is, a view of it, and the same result twice.
struct Returns;

impl Function<Torch> for Returns {
    fn name(&self) -> &'static str {
        "Returns"
    }

    fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        let x = inputs.get(0)?;
        let fresh = array(&**x.array() * 2.0);
        let view = array(x.array().view([1, 2]));
        Ok(vec![x.clone(), view, fresh.clone(), fresh].into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        let grads: Vec<_> = grads.into_iter().map(Option::unwrap).collect();
        assert!(grads.iter().map(|grad| grad.shape().len()).eq([1, 2, 1, 1]));
        let sum = &**grads[0].array()
            + grads[1].array().view([2])
            + &**grads[2].array() * 2.0
            + &**grads[3].array() * 20.0;
        Ok(array(sum).into())
    }
}

#[test]
fn an_input_a_view_of_it_and_one_tensor_twice_are_outputs_of_their_own() {
    let x = leaf(&[1.0, 2.0], Kind::Float);
    let outputs = call(Returns, &[&x]).unwrap();
    assert!(outputs.iter().all(|output| output.requires_grad() && !output.is_leaf()));
    assert!(x.is_leaf());
    for (position, expected) in [(0, 1.0), (1, 1.0), (2, 2.0), (3, 20.0)] {
        let root = outputs[position].sum(Kind::Float);
        let keep = BackwardOptions::new().retain_graph();
        let grad = gradpact_torch::grad(&[(&root, None)], &[&x], keep).unwrap().remove(0).unwrap();
        assert_eq!(read(&grad), [expected, expected], "output {position}");
    }
    let unrecorded = tch::no_grad(|| call(Returns, &[&x]).unwrap());
    assert!(unrecorded.iter().all(|output| !output.requires_grad()));
}

/// Declares a policy.
struct Strict;

impl Function<Torch> for Strict {
    fn name(&self) -> &'static str {
        "Strict"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
        ctx.set_policy(Policy::Strict);
        Ok(inputs.get(0)?.cast(DType::F16)?.into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        Ok(grads)
    }
}

#[test]
fn the_strict_policy_refuses_what_would_be_converted() {
    for (dtype, is_refused) in [(DType::F32, false), (DType::F16, true), (DType::F64, true)] {
        let x = leaf(&[1.0], Kind::Float);
        let y = call(Strict, &[&x]).unwrap().remove(0);
        assert_eq!(gradpact_torch::grad_dtype(&y).unwrap(), Some(GradDType::Exactly(DType::F32)));
        let z = call(Sends { grad: 0.5, dtype }, &[&y]).unwrap().remove(0);
        match backward(&z) {
            Ok(()) => assert!(!is_refused, "{dtype}"),
            Err(error) => {
                assert!(is_refused, "{error}");
                let text = format!("output 0 of `Strict`: expected f32, got {dtype}");
                assert!(error.to_string().contains(&text), "{error}");
            }
        }
    }
}

#[test]
fn grad_mode_in_backward_is_libtorchs() {
    struct Mode(Arc<Mutex<Vec<bool>>>);
    impl Function<Torch> for Mode {
        fn name(&self) -> &'static str {
            "Mode"
        }
        fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
            let y = &**inputs.get(0)?.array() * 1.0;
            assert!(!y.requires_grad());
            Ok(array(y).into())
        }
        fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
            let probe = leaf(&[1.0], Kind::Float) * 1.0;
            self.0.lock().unwrap().push(probe.requires_grad());
            Ok(grads)
        }
    }
    let log = Arc::new(Mutex::new(Vec::new()));
    let x = leaf(&[1.0], Kind::Float);
    let y = call(Mode(Arc::clone(&log)), &[&x]).unwrap().remove(0);
    gradpact_torch::grad(&[(&y, None)], &[&x], BackwardOptions::new().create_graph()).unwrap();
    backward(&y).unwrap();
    assert_eq!(*log.lock().unwrap(), [true, false]);
}
