//! `checkpoint`: the region runs again in backward, and nothing else is different.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gradpact::autograd::{checkpoint, node_creation_hook};
use gradpact::prelude::*;

use super::{Square, leaf, values};

/// How often the region ran.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// `exp(x²)·w`, of which the middle is saved nowhere.
fn region(runs: &Runs, x: &DynTensor, w: &DynTensor) -> impl Fn() -> Result<DynTensor> + Send + Sync + use<> {
    let (runs, x, w) = (runs.clone(), x.clone(), w.clone());
    move || {
        runs.one_more();
        x.mul(&x)?.exp()?.mul(&w)
    }
}

#[test]
fn a_region_is_recomputed_once_and_gives_the_gradients_that_it_gives_without() {
    let runs = Runs::default();
    let (x, w) = (leaf(DType::F32, &[0.5, -1.0]), leaf(DType::F32, &[2.0, 3.0]));
    let loss = |y: DynTensor| y.sum().unwrap().backward().unwrap();
    loss(region(&runs, &x, &w)().unwrap());
    let plain = (values(&x.grad().unwrap()), values(&w.grad().unwrap()));
    x.zero_grad();
    w.zero_grad();
    let before = runs.get();
    let y = checkpoint(region(&runs, &x, &w)).unwrap();
    assert_eq!(runs.get() - before, 1);
    let saved: Vec<_> = y.grad_fn().unwrap().saved_tensors().iter().map(ToString::to_string).collect();
    assert_eq!(saved, ["f32 [2], recomputed", "f32 [2], recomputed"]);
    loss(y);
    assert_eq!(runs.get() - before, 2, "once in forward, once in backward");
    assert_eq!((values(&x.grad().unwrap()), values(&w.grad().unwrap())), plain, "captured leaves too");
}

#[test]
fn the_contract_is_kept_where_a_reentrant_checkpoint_of_pytorch_loses_it() {
    // `15.checkpoint`: there the gradient 1e-9 of an f16 output declared f32 arrives as 0.
    let x = Tensor::<f32>::from_vec(vec![3.0], [1]).unwrap().requiring_grad().unwrap();
    let inside = x.clone();
    let y: Tensor<f16, f32> = checkpoint(move || Square.apply(&inside)).unwrap();
    let seed = DynTensor::from_vec(vec![1e-9_f32], [1]).unwrap();
    y.as_dyn().backward_with(&seed, BackwardOptions::new()).unwrap();
    assert_eq!(x.grad().unwrap().to_vec().unwrap(), [1e-9_f32 * 3.0 * 2.0]);
}

#[test]
fn several_backwards_each_recompute_and_agree() {
    let runs = Runs::default();
    let (x, w) = (leaf(DType::F64, &[0.5]), leaf(DType::F64, &[2.0]));
    let y = checkpoint(region(&runs, &x, &w)).unwrap();
    for times in 1..=3 {
        y.backward_opts(BackwardOptions::new().retain_graph()).unwrap();
        assert_eq!(runs.get(), 1 + times);
        // 2x·exp(x²)·w each time
        let expected = times as f64 * 2.0 * 0.5 * 0.25_f64.exp() * 2.0;
        assert!((values(&x.grad().unwrap())[0] - expected).abs() < 1e-13);
    }
    y.backward().unwrap();
    let error = y.backward().unwrap_err().to_string();
    assert!(error.contains("retain_graph"), "{error}");
}

#[test]
fn grad_and_double_backward_work_through_it() {
    let runs = Runs::default();
    let (x, w) = (leaf(DType::F64, &[0.5]), leaf(DType::F64, &[2.0]));
    let y = checkpoint(region(&runs, &x, &w)).unwrap();
    let options = BackwardOptions::new().create_graph();
    let first = gradpact::grad(&[(&y, None)], &[&x], options).unwrap()[0].clone().unwrap();
    let second = gradpact::grad(&[(&first, None)], &[&x, &w], BackwardOptions::new()).unwrap();
    let [dx, dw] = [0, 1].map(|input| values(second[input].as_ref().unwrap())[0]);
    assert!((dx - 2.0 * (2.0 + 4.0 * 0.25) * 0.25_f64.exp()).abs() < 1e-13, "(2 + 4x²)·exp(x²)·w");
    assert!((dw - 0.25_f64.exp()).abs() < 1e-14, "2x·exp(x²)");
}

#[test]
fn the_graph_is_the_one_without_a_checkpoint_with_its_hooks_and_labels() {
    let runs = Runs::default();
    let (x, w) = (leaf(DType::F32, &[0.5]), leaf(DType::F32, &[2.0]));
    let label = |node: &gradpact::autograd::NodeRef<gradpact::Cpu>| {
        node.set_metadata("label", "checkpointed".to_owned());
        Ok(())
    };
    let y = node_creation_hook(label, || checkpoint(region(&runs, &x, &w))).unwrap();
    let node = y.grad_fn().unwrap();
    assert_eq!(node.name(), "Mul");
    assert_eq!(*node.metadata::<String>("label").unwrap(), "checkpointed");
    let exp = node.next_edges()[0].edge().unwrap().node();
    assert_eq!(exp.name(), "Exp");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    exp.register_prehook(move |grads| {
        notes.lock().unwrap().push(values(grads[0].as_ref().unwrap()));
        Ok(None)
    });
    y.backward().unwrap();
    assert_eq!(*seen.lock().unwrap(), [vec![2.0]]);
}

#[test]
fn regions_nest() {
    let (outer, inner) = (Runs::default(), Runs::default());
    let (x, w) = (leaf(DType::F64, &[0.5]), leaf(DType::F64, &[2.0]));
    let nested = {
        let (outer, inner, x, w) = (outer.clone(), inner.clone(), x.clone(), w.clone());
        move || {
            outer.one_more();
            checkpoint(region(&inner, &x, &w))?.sin()
        }
    };
    let y = checkpoint(nested).unwrap();
    y.backward().unwrap();
    let u = 0.25_f64.exp() * 2.0;
    assert!((values(&x.grad().unwrap())[0] - u.cos() * u).abs() < 1e-14, "2x = 1");
    assert!(outer.get() == 2 && inner.get() >= 2);
}

#[test]
fn a_region_may_differentiate_inside() {
    // y = x·(d/dx x³) = 3x³, inside one region.
    let x = leaf(DType::F64, &[2.0]);
    let inside = x.clone();
    let region = move || {
        let cube = inside.mul(&inside)?.mul(&inside)?;
        let options = BackwardOptions::new().create_graph();
        let slope = gradpact::grad(&[(&cube, None)], &[&inside], options)?;
        inside.mul(slope[0].as_ref().unwrap())
    };
    let y = checkpoint(region).unwrap();
    assert_eq!(values(&y), [24.0]);
    y.backward().unwrap();
    assert_eq!(values(&x.grad().unwrap()), [36.0], "9x²");
}

#[test]
fn a_region_that_does_something_else_the_second_time_is_an_error() {
    let runs = Runs::default();
    let x = leaf(DType::F32, &[0.5, 1.0]);
    let (again, inside) = (runs.clone(), x.clone());
    let fewer = move || {
        again.one_more();
        if again.get() % 2 == 1 { inside.exp()?.exp() } else { inside.exp() }
    };
    let y = checkpoint(fewer).unwrap().sum().unwrap();
    let error = y.backward().unwrap_err().to_string();
    for part in
        ["unpacking a saved tensor of `Exp`", "`checkpoint` must do the same", "saved 1", "first run 2"]
    {
        assert!(error.contains(part), "{error}");
    }
    let (again, inside) = (Runs::default(), x.clone());
    let wider = move || {
        again.one_more();
        let x = if again.get() == 1 { inside.clone() } else { inside.cast(DType::F64)? };
        x.exp()
    };
    let error = checkpoint(wider).unwrap().sum().unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("saved tensor 0 of `Exp`: expected f32 [2]") && error.contains("got f64 [2]"));
}

#[test]
fn errors_and_panics_of_a_region_are_errors_in_forward_and_in_backward() {
    type Fails = fn() -> Error;
    let returns: Fails = || Error::custom("no more");
    let panics: Fails = || panic!("no more");
    let x = leaf(DType::F32, &[0.5]);
    for fails in [returns, panics] {
        let runs = Runs::default();
        let (again, inside) = (runs.clone(), x.clone());
        let region = move || {
            again.one_more();
            if again.get() == 2 { Err(fails()) } else { inside.exp() }
        };
        let y = checkpoint(region).unwrap();
        let error = y.backward_opts(BackwardOptions::new().retain_graph()).unwrap_err().to_string();
        assert!(error.contains("of `Exp`") && error.contains("no more"), "{error}");
        assert!(x.grad().is_none());
        y.backward().unwrap();
        assert_eq!(runs.get(), 3, "and it can be tried again");
        x.zero_grad();
    }
    let error = checkpoint(|| Err::<DynTensor, _>(Error::custom("at once"))).unwrap_err();
    assert!(error.to_string().contains("at once"));
}

#[test]
fn many_threads_go_backward_through_one_region_at_once() {
    let runs = Runs::default();
    let (x, w) = (leaf(DType::F64, &[0.5]), leaf(DType::F64, &[2.0]));
    let y = checkpoint(region(&runs, &x, &w)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    y.backward_opts(BackwardOptions::new().retain_graph()).unwrap();
                }
            });
        }
    });
    let one = 2.0 * 0.5 * 0.25_f64.exp() * 2.0;
    assert!((values(&x.grad().unwrap())[0] / (160.0 * one) - 1.0).abs() < 1e-12);
}

#[test]
fn a_region_and_its_recomputation_are_freed_when_backward_has_run() {
    struct Watched(Arc<()>);
    impl Function for Watched {
        fn name(&self) -> &'static str {
            "Watched"
        }

        fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
            ctx.save_for_backward(inputs.get(0)?);
            Ok(inputs.get(0)?.mul_scalar(2.0)?.into())
        }

        fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
            assert_eq!(values(ctx.saved_tensor(0)?), [1.5]);
            let _ = &self.0;
            Ok(grads)
        }
    }
    let alive = Arc::new(());
    let x = leaf(DType::F32, &[0.5]);
    let (again, inside) = (Arc::clone(&alive), x.clone());
    let region = move || {
        let inner = inside.add_scalar(1.0)?;
        Ok(apply(Watched(Arc::clone(&again)), &[&inner])?[0].clone())
    };
    let y = checkpoint(region).unwrap();
    assert_eq!(Arc::strong_count(&alive), 3, "here, in the region, in the one node");
    y.backward().unwrap();
    assert_eq!(
        Arc::strong_count(&alive),
        2,
        "the recomputed graph is gone, and the region, which nobody needs again"
    );
    drop(y);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn nothing_is_recomputed_where_nothing_is_recorded() {
    let runs = Runs::default();
    let (x, w) = (leaf(DType::F32, &[0.5]), leaf(DType::F32, &[2.0]));
    let y = no_grad(|| checkpoint(region(&runs, &x, &w))).unwrap();
    assert!(!y.requires_grad());
    assert_eq!(runs.get(), 1);
}
