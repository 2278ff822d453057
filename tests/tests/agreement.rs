//! What a tensor's type says of its gradient is what the graph does, on every way to get there; and hostile uses of the graph
//! that once broke it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

use std::sync::{Arc, Mutex};

use gradpact::autograd::{HookHandle, NodeRef, node_creation_hook};
use gradpact::prelude::*;
use gradpact::{Cpu, backward, grad};

/// Sends the gradient 1e-10 to a tensor whose gradient arrives in f32.
#[autograd_function(out = f32, grad = f32)]
struct SendsTiny;

impl Op for SendsTiny {
    type Inputs = Tensor<f16, f32>;

    fn forward(&self, _: &mut Context, _: Value<f16>) -> Result<Value<f32>> {
        Ok(Value::scalar(0.0))
    }

    fn backward(&self, _: &Context, _: Value<f32>) -> Result<Value<f32>> {
        Value::full([1], 1e-10)
    }
}

fn f16_leaf(value: f32) -> Tensor<f16> {
    Tensor::<f16>::from_vec(vec![f16::from_f32(value)], [1]).unwrap().requiring_grad().unwrap()
}

#[test]
fn a_constant_that_promises_a_wide_gradient_makes_the_graph_keep_the_promise() {
    let x = f16_leaf(1.0);
    let constant = Tensor::<f16, f32>::full([1], 60000.0).unwrap();
    let y: Tensor<f16, f32> = x.mul(&constant).unwrap();
    assert_eq!(y.as_dyn().grad_dtype(), y.grad_dtype());
    SendsTiny.apply(&y).unwrap().backward().unwrap();
    // 6e-6 survives in f16, to which x's own edge rounds; 1e-10 would not have.
    assert_eq!(x.grad().unwrap().item().unwrap(), f16::from_f32(1e-10 * 60000.0));
}

#[test]
fn an_operation_that_has_nothing_to_do_keeps_the_promise_of_its_type_too() {
    let x = Tensor::<f32>::ones([2]).unwrap().requiring_grad().unwrap();
    let narrow: Tensor<f32, f16> = x.narrow_grad::<f16>().unwrap();
    let same: Tensor<f32, f32> = narrow.reshape([2]).unwrap();
    assert_eq!(same.as_dyn().grad_dtype(), Some(GradDType::Exactly(DType::F32)));
    // 2,000 gradients of 1e-8 are summed in f32 and rounded to f16 once; one by one each would vanish.
    let tiny: Vec<_> = (0..2000).map(|_| same.mul_scalar(1e-8).unwrap().sum().unwrap().into_dyn()).collect();
    let roots: Vec<_> = tiny.iter().map(|loss| (loss, None)).collect();
    backward(&roots, BackwardOptions::new()).unwrap();
    assert_eq!(x.grad().unwrap().to_vec().unwrap(), [f16::from_f32(2e-5).to_f32(); 2]);
}

#[test]
fn three_gradient_dtypes_of_eight_bits_and_more_meet_where_the_type_says() {
    let leaf = Tensor::<bf16>::ones([1]).unwrap();
    let a = leaf.requiring_grad_in::<f8e4m3>().unwrap();
    let b = leaf.requiring_grad_in::<f8e5m2>().unwrap();
    let sum: Tensor<bf16, f32> = a.add(&b).unwrap();
    assert_eq!(sum.as_dyn().grad_dtype(), sum.grad_dtype());
}

#[test]
fn a_result_stored_in_integers_has_no_gradient_that_its_type_does_not_know_of() {
    let x = Tensor::<f32>::ones([2]).unwrap().requiring_grad().unwrap();
    let sum: Tensor<i64> = x.sum_in::<i64>().unwrap();
    assert!(!sum.requires_grad());
    assert!(sum.cast::<f32>().unwrap().backward().is_err());
}

/// `exp`, computed under `no_grad`, saved and returned, perhaps twice.
struct Exp {
    twice: bool,
}

impl Function for Exp {
    fn name(&self) -> &'static str {
        "Exp"
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        let y = no_grad(|| inputs.get(0)?.exp())?;
        ctx.save_for_backward(&y);
        if self.twice {
            ctx.mark_non_differentiable(&[0]);
            return Ok([y.clone(), y].into());
        }
        Ok(y.into())
    }

    fn backward(&self, ctx: &Context, mut grads: Gradients) -> Result<Gradients> {
        let grad = grads.pop().flatten().ok_or_else(|| Error::custom("no gradient"))?;
        Ok(grad.mul(ctx.saved_tensor(0)?)?.into())
    }
}

#[test]
fn a_saved_output_is_known_as_one_however_it_was_computed() {
    for twice in [false, true] {
        let x = DynTensor::from_vec(vec![0.5_f64], [1]).unwrap().requiring_grad().unwrap();
        let y = apply(Exp { twice }, &[&x]).unwrap().pop().unwrap();
        let options = BackwardOptions::new().create_graph();
        let first = grad(&[(&y, None)], &[&x], options).unwrap().remove(0).unwrap();
        let second = grad(&[(&first, None)], &[&x], BackwardOptions::new()).unwrap().remove(0).unwrap();
        assert_eq!(second.item::<f64>().unwrap(), 0.5_f64.exp(), "the second derivative of exp is exp");
    }
}

/// Declares in its formulas what the attribute has declared already.
#[autograd_function(out = f16)]
struct DeclaresItself;

impl Op for DeclaresItself {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.mark_non_differentiable(&[0]);
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f32>> {
        grad.cast()
    }
}

#[test]
fn formulas_cannot_change_the_contract_that_the_attribute_declares() {
    let x = Tensor::<f32>::ones([1]).unwrap().requiring_grad().unwrap();
    let error = DeclaresItself.apply(&x).unwrap_err().to_string();
    assert!(error.contains("`DeclaresItself` calls `mark_non_differentiable`"), "{error}");
    assert!(error.contains("change its `grad = …`"), "{error}");
}

#[test]
fn a_panic_in_a_hook_of_any_kind_is_an_error_and_the_next_backward_works() {
    type Register = fn(&DynTensor, &DynTensor) -> Result<HookHandle>;
    let kinds: [(Register, &str); 5] = [
        (|_, y| y.register_hook(|_| panic!("no more")), "Mul"),
        (|x, _| x.register_hook(|_| panic!("no more")), "AccumulateGrad"),
        (|_, y| Ok(y.grad_fn().unwrap().register_prehook(|_| panic!("no more"))), "Mul"),
        (|_, y| Ok(y.grad_fn().unwrap().register_hook(|_, _| panic!("no more"))), "Mul"),
        (|x, _| x.register_post_accumulate_grad_hook(|_| panic!("no more")), "AccumulateGrad"),
    ];
    for (register, node) in kinds {
        let x = DynTensor::from_vec(vec![1.0_f32], [1]).unwrap().requiring_grad().unwrap();
        let y = x.mul(&x).unwrap();
        let handle = register(&x, &y).unwrap();
        let error = y.backward_opts(BackwardOptions::new().retain_graph()).unwrap_err().to_string();
        assert_eq!(error, format!("a hook of `{node}` panicked: no more"));
        handle.remove();
        x.zero_grad();
        y.backward().unwrap();
        assert_eq!(x.grad().unwrap().item::<f32>().unwrap(), 2.0);
    }
    let x = DynTensor::ones([1], DType::F32).unwrap().requiring_grad().unwrap();
    let refuse = |_: &NodeRef<Cpu>| panic!("no more");
    let error = node_creation_hook(refuse, || x.exp()).unwrap_err().to_string();
    assert_eq!(error, "a hook of `Exp` panicked: no more");
    assert!(x.exp().is_ok());
}

#[test]
fn an_operation_whose_gradient_a_prehook_took_away_sends_none_on() {
    let x = DynTensor::from_vec(vec![1.0_f32], [1]).unwrap().requiring_grad().unwrap();
    let y = x.mul(&x).unwrap();
    let take_away = |grads: &Gradients| Ok(Some(grads.iter().map(|_| None).collect()));
    let handle = y.grad_fn().unwrap().register_prehook(take_away);
    y.backward_opts(BackwardOptions::new().retain_graph()).unwrap();
    assert!(x.grad().is_none(), "as in PyTorch, and not zeros");
    handle.remove();
    y.backward().unwrap();
    assert_eq!(x.grad().unwrap().item::<f32>().unwrap(), 2.0);
}

#[test]
fn a_creation_hook_may_read_the_gradient_that_is_being_added_to() {
    let x = DynTensor::from_vec(vec![3.0_f32], [1]).unwrap().requiring_grad().unwrap();
    let seen = Arc::new(Mutex::new(0));
    let (count, leaf) = (Arc::clone(&seen), x.clone());
    let look = move |_: &NodeRef<Cpu>| {
        *count.lock().unwrap() += usize::from(leaf.grad().is_some());
        Ok(())
    };
    node_creation_hook(look, || {
        for _ in 0..2 {
            let square = x.mul(&x).unwrap();
            square.backward_opts(BackwardOptions::new().create_graph()).unwrap();
        }
    });
    assert!(*seen.lock().unwrap() > 0);
    assert_eq!(x.grad().unwrap().item::<f32>().unwrap(), 12.0);
    x.zero_grad();
}

#[test]
fn a_view_larger_than_memory_can_be_printed() {
    let huge = DynTensor::scalar(1.5, DType::F32).broadcast_to([1_usize << 40, 1 << 10]).unwrap();
    let text = huge.to_string();
    assert!(text.contains("1.5") && text.contains("…") && text.contains("[1099511627776, 1024]"), "{text}");
}

#[test]
fn an_optional_input_can_be_saved_and_is_known_to_be_missing() {
    /// `x·w`, or `x` without `w`.
    #[autograd_function(out = f32)]
    struct Weigh;

    impl Op for Weigh {
        type Inputs = (Tensor<f32>, Option<Tensor<f32>>);

        fn forward(&self, ctx: &mut Context, (x, w): (Value<f32>, Option<Value<f32>>)) -> Result<Value<f32>> {
            ctx.save_for_backward((&x, &w));
            w.map_or(Ok(x.clone()), |w| x.mul(&w))
        }

        fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Option<Value<f32>>)> {
            let (x, w): (Value<f32>, Option<Value<f32>>) = ctx.saved()?;
            Ok(match w {
                Some(w) => (grad.mul(&w)?, Some(grad.mul(&x)?)),
                None => (grad, None),
            })
        }
    }

    let leaf = |value| Tensor::<f32>::scalar(value).requiring_grad().unwrap();
    let (x, w) = (leaf(2.0), leaf(5.0));
    Weigh.apply((&x, None)).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 1.0);
    Weigh.apply((&x, Some(&w))).unwrap().backward().unwrap();
    assert_eq!((x.grad().unwrap().item().unwrap(), w.grad().unwrap().item().unwrap()), (6.0, 2.0));
}

#[test]
fn numbers_at_the_edge_of_a_dtype_are_taken_exactly_or_refused() {
    let bytes = DynTensor::from_vec(vec![5_u8], [1]).unwrap();
    assert_eq!(bytes.sub_scalar(3.0).unwrap().to_vec::<u8>().unwrap(), [2]);
    let one = DynTensor::from_vec(vec![1_i64], [1]).unwrap();
    assert!(one.mul_scalar(2.0_f64.powi(63)).is_err(), "2^63 is no i64");
    let ends = DynTensor::linspace(-1.7e308, 1.7e308, 3, DType::F64).unwrap();
    assert_eq!(ends.to_vec::<f64>().unwrap(), [-1.7e308, 0.0, 1.7e308]);
}
