//! Many threads on one graph, with all that may hang on it; and many that build graphs from the same leaves and Functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use gradpact::autograd::{HookHandle, checkpoint, save_in, saved_tensors_hooks};
use gradpact::prelude::*;
use gradpact::{Gradients, backward, grad};

use super::on_threads;

const THREADS: usize = 8;
const ROUNDS: usize = 25;

/// All backwards of a test.
const RUNS: usize = THREADS * ROUNDS;

/// `x²` stored in f16, whose backward must receive f32.
#[autograd_function(out = f16, grad = f32)]
#[derive(Clone)]
struct Square;

impl Op for Square {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.mul(&x)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        grad.mul(&x)?.mul_scalar(2.0)
    }
}

fn leaf(value: f32) -> DynTensor {
    DynTensor::from_vec(vec![value], [1]).unwrap().requiring_grad().unwrap()
}

fn value(tensor: Option<DynTensor>) -> f32 {
    tensor.unwrap().to_vec::<f32>().unwrap()[0]
}

/// `y = x²` with its Function, and `y·w`: at x = 3 and w = 2 the gradients are 2 for y, 12 for x, and 9 for w.
struct Graph {
    x: DynTensor,
    w: DynTensor,
    y: DynTensor,
    root: DynTensor,
}

/// y and the product.
type Made = Result<(DynTensor, DynTensor)>;

fn region(x: &DynTensor, w: &DynTensor) -> Made {
    let y = Square.apply(&x.typed()?)?.into_dyn();
    let root = y.cast(DType::F32)?.mul(w)?;
    Ok((y, root))
}

/// The graph as it is, with its saved tensors packed, narrowed (all are exact in f16), recomputed, and recomputed inside a
/// region that packs.
fn graphs() -> [(&'static str, Graph); 5] {
    let pack = |tensor: &DynTensor| Ok((tensor.dtype(), tensor.to_f64_vec()?));
    let unpack = |(dtype, values): &(DType, Vec<f64>)| DynTensor::from_slice(values, [1])?.cast(*dtype);
    let checkpointed = |x: &DynTensor, w: &DynTensor| {
        let (x, w) = (x.clone(), w.clone());
        checkpoint(move || region(&x, &w))
    };
    let graph = |make: &dyn Fn(&DynTensor, &DynTensor) -> Made| {
        let (x, w) = (leaf(3.0), leaf(2.0));
        let (y, root) = make(&x, &w).unwrap();
        Graph { x, w, y, root }
    };
    [
        ("plain", graph(&region)),
        ("packed", graph(&move |x, w| saved_tensors_hooks(pack, unpack, || region(x, w)))),
        ("narrowed", graph(&|x, w| save_in(DType::F16, || region(x, w))?)),
        ("recomputed", graph(&checkpointed)),
        ("both", graph(&move |x, w| saved_tensors_hooks(pack, unpack, || checkpointed(x, w)))),
    ]
}

#[test]
fn backwards_on_many_threads_add_up_exactly_whatever_is_saved_kept_and_hooked() {
    for (name, Graph { x, w, y, root }) in graphs() {
        let calls = Arc::new([const { AtomicUsize::new(0) }; 4]);
        let count = |which: usize| {
            let calls = Arc::clone(&calls);
            move |dtype: DType| {
                assert_eq!(dtype, DType::F32);
                calls[which].fetch_add(1, Relaxed);
            }
        };
        let dtype = |grads: &Gradients| grads[0].as_ref().unwrap().dtype();
        y.retain_grad().unwrap();
        let (on_y, before, after, at_leaf) = (count(0), count(1), count(2), count(3));
        y.register_hook(move |grad| {
            on_y(grad.dtype());
            grad.mul_scalar(2.0).map(Some)
        })
        .unwrap();
        let node = y.grad_fn().unwrap();
        node.register_prehook(move |grads| {
            before(dtype(grads));
            Ok(None)
        });
        node.register_hook(move |_, grads| {
            after(dtype(grads));
            Ok(None)
        });
        let hook = move |leaf: &DynTensor| {
            at_leaf(leaf.grad().unwrap().dtype());
            Ok(())
        };
        x.register_post_accumulate_grad_hook(hook).unwrap();
        on_threads(THREADS, |_| {
            for _ in 0..ROUNDS {
                root.backward_opts(BackwardOptions::new().retain_graph()).unwrap();
            }
        });
        let sums = [x.grad(), w.grad(), y.grad()].map(value);
        assert_eq!(sums, [24.0, 9.0, 4.0].map(|each| each * RUNS as f32), "{name}");
        assert_eq!([0, 1, 2, 3].map(|which| calls[which].load(Relaxed)), [RUNS; 4], "{name}");
    }
}

#[test]
fn recorded_backwards_on_many_threads_add_up_exactly_and_can_be_differentiated() {
    for (name, Graph { x, w, root, .. }) in graphs() {
        on_threads(THREADS, |_| {
            for _ in 0..ROUNDS {
                let first = grad(&[(&root, None)], &[&x], BackwardOptions::new().create_graph()).unwrap();
                let first = first[0].clone().unwrap();
                let both = grad(&[(&first, None)], &[&x, &w], BackwardOptions::new()).unwrap();
                // d(2xw) = 2w and 2x
                assert_eq!(both.into_iter().map(value).collect::<Vec<_>>(), [4.0, 6.0], "{name}");
            }
        });
        on_threads(THREADS, |_| root.backward_opts(BackwardOptions::new().create_graph()).unwrap());
        let sum = x.grad().unwrap();
        assert_eq!(value(Some(sum.clone())), 12.0 * THREADS as f32, "{name}");
        let second = grad(&[(&sum, None)], &[&w], BackwardOptions::new()).unwrap();
        assert_eq!(value(second[0].clone()), 6.0 * THREADS as f32, "{name}");
        // Ends the circle from the leaf to its gradient.
        [x, w].iter().for_each(DynTensor::zero_grad);
    }
}

#[test]
fn of_backwards_that_race_to_free_a_graph_each_is_whole_or_an_error() {
    for _ in 0..200 {
        let x = leaf(3.0);
        let y = x.mul(&x).unwrap();
        let whole = AtomicUsize::new(0);
        on_threads(4, |_| match y.backward() {
            Ok(()) => drop(whole.fetch_add(1, Relaxed)),
            Err(error) => assert!(matches!(error.root(), Error::SavedFreed(_)), "{error}"),
        });
        let whole = whole.into_inner();
        assert!(whole >= 1);
        assert_eq!(value(x.grad()), 6.0 * whole as f32);
    }
}

#[test]
fn threads_share_functions_and_leaves_and_build_graphs_of_their_own() {
    let (x, w) = (leaf(3.0), leaf(2.0));
    let function = Arc::new(Square);
    on_threads(THREADS, |number| {
        for _ in 0..ROUNDS {
            let y = apply(Arc::clone(&function), &[&x]).unwrap()[0].clone();
            assert_eq!(y.grad_dtype(), Some(GradDType::Exactly(DType::F32)));
            let factor = f64::from(number as u32);
            y.cast(DType::F32).unwrap().mul(&w).unwrap().mul_scalar(factor).unwrap().backward().unwrap();
        }
    });
    // Each thread scales by its number: 0 + 1 + … + 7.
    let scale = (ROUNDS * THREADS * (THREADS - 1) / 2) as f32;
    assert_eq!([x.grad(), w.grad()].map(value), [12.0 * scale, 9.0 * scale]);
}

#[test]
fn graphs_are_dropped_on_any_thread_while_others_go_through_them() {
    let x = leaf(1.0);
    let deep = (0..2000).try_fold(x.clone(), |y, _| y.mul_scalar(1.0)).unwrap();
    let branches: Vec<_> = (0..THREADS).map(|_| deep.mul_scalar(1.0).unwrap()).collect();
    let branches = std::sync::Mutex::new(branches);
    drop(deep);
    on_threads(THREADS, |_| {
        let branch = branches.lock().unwrap().pop().unwrap();
        branch.backward_opts(BackwardOptions::new().retain_graph()).unwrap();
        drop(branch);
    });
    assert_eq!(value(x.grad()), THREADS as f32);
}

#[test]
fn a_hook_is_removed_while_it_runs_elsewhere_and_does_not_run_again() {
    let x = leaf(3.0);
    let y = x.mul(&x).unwrap();
    let (entered, enters) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let released = std::sync::Mutex::new(released);
    let hook = move |_: &DynTensor| {
        entered.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        Ok(None)
    };
    let handle = y.register_hook(hook).unwrap();
    thread::scope(|scope| {
        let running = scope.spawn(|| y.backward_opts(BackwardOptions::new().retain_graph()));
        enters.recv().unwrap();
        // Neither waits for the hook to end.
        handle.remove();
        handle.clone().remove();
        release.send(()).unwrap();
        running.join().unwrap().unwrap();
    });
    y.backward().unwrap();
    // The hook, and with it its end of the channel, is gone.
    enters.recv().unwrap_err();
    assert_eq!(value(x.grad()), 12.0);
}

#[test]
fn hooks_come_and_go_while_many_threads_run_backward() {
    let x = leaf(3.0);
    let y = x.mul(&x).unwrap();
    let (calls, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
    on_threads(THREADS, |number| {
        for _ in 0..ROUNDS {
            if number % 2 == 0 {
                backward(&[(&y, None)], BackwardOptions::new().retain_graph()).unwrap();
                continue;
            }
            let (calls, held) = (Arc::clone(&calls), Arc::clone(&alive));
            let noting = move || {
                let _ = &held;
                calls.fetch_add(1, Relaxed);
            };
            let (a, b, c) = (noting.clone(), noting.clone(), noting);
            let node = y.grad_fn().unwrap();
            let tensor_hook = move |_: &DynTensor| {
                a();
                Ok(None)
            };
            let leaf_hook = move |_: &DynTensor| {
                c();
                Ok(())
            };
            let handles = [
                y.register_hook(tensor_hook).unwrap(),
                node.register_prehook(move |_| {
                    b();
                    Ok(None)
                }),
                x.register_post_accumulate_grad_hook(leaf_hook).unwrap(),
            ];
            y.backward_opts(BackwardOptions::new().retain_graph()).unwrap();
            handles.iter().for_each(HookHandle::remove);
        }
    });
    assert_eq!(value(x.grad()), 6.0 * RUNS as f32);
    assert_eq!(Arc::strong_count(&alive), 1, "removed hooks are dropped");
    let before = calls.load(Relaxed);
    // Each of the three ran at least in the backward of the thread that registered it.
    assert!(before >= 3 * RUNS / 2, "{before}");
    y.backward().unwrap();
    assert_eq!(calls.load(Relaxed), before);
}
