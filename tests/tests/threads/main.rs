//! Several threads on one graph, and panics in the user's code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod leaves;
mod promises;
mod shared;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;

use gradpact::autograd::{BackwardOptions, Gradients, Outputs};
use gradpact::error::Phase;
use gradpact::{
    Context, DType, Error, Function, GradDType, Inputs, Result, apply, backward, enable_grad, grad, no_grad,
};
use gradpact_tests::toy::{self, Toy, ToyTensor, tensor};

/// A Function whose halves are closures.
struct Custom<F, B> {
    forward: F,
    backward: B,
}

type Forward = fn(&mut Context<Toy>, &ToyTensor) -> Result<ToyTensor>;

impl<F, B> Function<Toy> for Custom<F, B>
where
    F: Fn(&mut Context<Toy>, &ToyTensor) -> Result<ToyTensor> + Send + Sync + 'static,
    B: Fn(&ToyTensor) -> Result<ToyTensor> + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        "Custom"
    }

    fn forward(&self, ctx: &mut Context<Toy>, inputs: &Inputs<'_, Toy>) -> Result<Outputs<Toy>> {
        (self.forward)(ctx, inputs.get(0)?).map(Into::into)
    }

    fn backward(&self, _: &Context<Toy>, grads: Gradients<Toy>) -> Result<Gradients<Toy>> {
        (self.backward)(grads[0].as_ref().unwrap()).map(Into::into)
    }
}

/// An identity with this backward.
fn identity<B>(input: &ToyTensor, backward: B) -> Result<ToyTensor>
where
    B: Fn(&ToyTensor) -> Result<ToyTensor> + Send + Sync + 'static,
{
    let forward: Forward = |_, x| Ok(x.clone());
    Ok(apply(Custom { forward, backward }, &[input])?[0].clone())
}

/// Runs `body` on as many threads at once, each with its number.
fn on_threads(count: usize, body: impl Fn(usize) + Sync) {
    let start = Barrier::new(count);
    thread::scope(|scope| {
        for number in 0..count {
            let (start, body) = (&start, &body);
            scope.spawn(move || {
                start.wait();
                body(number);
            });
        }
    });
}

fn leaf(value: f64) -> ToyTensor {
    tensor(DType::F32, &[value]).requiring_grad().unwrap()
}

fn values(tensor: &ToyTensor) -> Vec<f64> {
    tensor.array().values().to_vec()
}

fn gradient(leaf: &ToyTensor) -> Vec<f64> {
    values(&leaf.grad().unwrap())
}

#[test]
fn several_threads_run_backward_over_one_graph_and_the_leaf_has_the_sum() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 50;
    let x = leaf(3.0);
    let square = toy::mul(&x, &x).unwrap();
    let root = toy::mul(&square, &x).unwrap();
    on_threads(THREADS, |_| {
        for _ in 0..ROUNDS {
            backward(&[(&root, None)], BackwardOptions::new().retain_graph()).unwrap();
        }
    });
    // d x³ = 3 x² = 27, exact in f32 also four hundred times.
    assert_eq!(gradient(&x), [(27 * THREADS * ROUNDS) as f64]);
}

#[test]
fn several_threads_ask_one_graph_for_gradients_and_each_gets_its_own() {
    let x = leaf(3.0);
    let root = toy::mul(&toy::mul(&x, &x).unwrap(), &x).unwrap();
    thread::scope(|scope| {
        for seed in 1..=8 {
            let (root, x) = (&root, &x);
            scope.spawn(move || {
                let seed = tensor(DType::F64, &[f64::from(seed)]);
                let options = BackwardOptions::new().retain_graph();
                let found = grad(&[(root, Some(&seed))], &[x], options).unwrap();
                assert_eq!(values(found[0].as_ref().unwrap()), [27.0 * values(&seed)[0]]);
            });
        }
    });
    assert!(x.grad().is_none());
}

#[test]
fn graphs_made_on_several_threads_join_in_one() {
    let x = leaf(2.0);
    let parts: Vec<_> = thread::scope(|scope| {
        let spawn =
            |_| scope.spawn(|| (0..100).fold(x.clone(), |y, _| identity(&y, |g| Ok(g.clone())).unwrap()));
        let threads: Vec<_> = (0..8).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let sum = parts.into_iter().reduce(|a, b| toy::add(&a, &b).unwrap()).unwrap();
    thread::scope(|scope| scope.spawn(|| sum.backward().unwrap()).join().unwrap());
    assert_eq!(gradient(&x), [8.0]);
}

#[test]
fn a_declared_dtype_is_kept_on_every_thread() {
    let x = leaf(1.0);
    let forward: Forward = |ctx, x| {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F64)])?;
        x.cast(DType::F16)
    };
    let backward = |grad: &ToyTensor| {
        assert_eq!(grad.dtype(), DType::F64);
        Ok(grad.clone())
    };
    let root = apply(Custom { forward, backward }, &[&x]).unwrap()[0].clone();
    thread::scope(|scope| {
        for dtype in DType::FLOATS {
            let root = &root;
            let seed = tensor(dtype, &[1.0]);
            scope.spawn(move || root.backward_with(&seed, BackwardOptions::new()).unwrap());
        }
    });
    assert_eq!(gradient(&x), [DType::FLOATS.len() as f64]);
}

#[test]
fn no_grad_holds_for_its_own_thread_only() {
    let x = leaf(2.0);
    no_grad(|| {
        assert!(!toy::mul(&x, &x).unwrap().requires_grad());
        let other = thread::scope(|scope| scope.spawn(|| toy::mul(&x, &x).unwrap()).join().unwrap());
        assert!(other.requires_grad());
        assert!(enable_grad(|| toy::mul(&x, &x).unwrap()).requires_grad());
    });
}

#[test]
fn the_grad_mode_is_as_before_after_a_panic_inside_it() {
    let x = leaf(2.0);
    assert!(catch_unwind(AssertUnwindSafe(|| no_grad(|| panic!("inside no_grad")))).is_err());
    assert!(toy::mul(&x, &x).unwrap().requires_grad());
    no_grad(|| {
        assert!(catch_unwind(AssertUnwindSafe(|| enable_grad(|| panic!("inside enable_grad")))).is_err());
        assert!(!toy::mul(&x, &x).unwrap().requires_grad());
    });
}

fn panicking(x: &ToyTensor) -> Result<ToyTensor> {
    let forward: Forward = |_, x| panic!("the value is {:?}", x.array().values());
    Ok(apply(Custom { forward, backward: |g: &ToyTensor| Ok(g.clone()) }, &[x])?[0].clone())
}

#[test]
fn a_panic_in_forward_is_an_error_that_names_the_function_and_records_nothing() {
    let x = leaf(2.0);
    let error = panicking(&x).unwrap_err();
    assert!(matches!(&error, Error::Panicked { function, phase: Phase::Forward, message }
        if function == "Custom" && message == "the value is [2.0]"));
    assert_eq!(error.to_string(), "forward of `Custom` panicked: the value is [2.0]");
    let y = toy::mul(&x, &x).unwrap();
    assert!(y.requires_grad(), "the mode of the forward has ended");
    y.backward().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}

#[test]
fn a_panic_in_backward_is_an_error_and_graph_leaves_and_thread_stay_usable() {
    let x = leaf(2.0);
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let backward = move |grad: &ToyTensor| match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => panic!("not yet"),
        1 => std::panic::panic_any(1_u8),
        _ => Ok(grad.clone()),
    };
    let y = toy::mul(&x, &x).unwrap();
    let root = identity(&y, backward).unwrap();
    let error = root.backward().unwrap_err();
    assert_eq!(error.to_string(), "backward of `Custom` panicked: not yet");
    let error = root.backward().unwrap_err();
    assert_eq!(error.to_string(), "backward of `Custom` panicked: (a payload that is not text)");
    assert!(x.grad().is_none());
    assert!(toy::mul(&x, &x).unwrap().requires_grad());
    root.backward().unwrap();
    assert_eq!(gradient(&x), [4.0]);
}

#[test]
fn a_backward_may_run_backward_on_graphs_of_its_own() {
    let (x, inner) = (leaf(2.0), leaf(5.0));
    let shared = inner.clone();
    let backward = move |grad: &ToyTensor| {
        assert!(!toy::mul(&shared, &shared)?.requires_grad(), "backward itself is not recorded");
        let found = enable_grad(|| {
            let cube = toy::mul(&toy::mul(&shared, &shared)?, &shared)?;
            cube.backward_with(grad, BackwardOptions::new().retain_graph())?;
            gradpact::grad(&[(&cube, None)], &[&shared], BackwardOptions::new())
        })?;
        assert!(!toy::mul(&shared, &shared)?.requires_grad(), "nor is it afterwards");
        toy::mul(grad, found[0].as_ref().unwrap())
    };
    identity(&x, backward).unwrap().backward().unwrap();
    assert_eq!(gradient(&x), [75.0]);
    assert_eq!(gradient(&inner), [75.0]);
}

#[test]
fn a_backward_may_run_backward_on_the_leaf_that_the_outer_one_ends_at() {
    let x = leaf(2.0);
    let again = x.clone();
    let backward = move |grad: &ToyTensor| {
        enable_grad(|| toy::mul(&again, &again)?.backward())?;
        Ok(grad.clone())
    };
    identity(&x, backward).unwrap().backward().unwrap();
    assert_eq!(gradient(&x), [5.0], "4 of the inner, 1 of the outer");
}

#[test]
fn an_error_in_a_nested_backward_names_both_functions() {
    let x = leaf(2.0);
    let outer = identity(&x, |grad| {
        enable_grad(|| identity(&leaf(1.0), |_| panic!("deep inside"))?.backward())?;
        Ok(grad.clone())
    });
    let error = outer.unwrap().backward().unwrap_err();
    assert_eq!(error.to_string(), "in backward of `Custom`: backward of `Custom` panicked: deep inside");
    assert!(toy::mul(&x, &x).unwrap().requires_grad());
}

#[test]
fn a_graph_left_in_a_thread_local_is_dropped_when_its_thread_ends() {
    thread_local! {
        static LEFT: RefCell<Option<ToyTensor>> = const { RefCell::new(None) };
    }
    let deep = |length| (0..length).fold(leaf(1.0), |y, _| identity(&y, |g| Ok(g.clone())).unwrap());
    for length in [1, 1000, 200_000] {
        let ends = thread::Builder::new().stack_size(2 << 20).spawn(move || {
            // Its destructor is registered first, and so runs after those of what dropping uses.
            LEFT.with(|left| *left.borrow_mut() = None);
            drop(deep(1000));
            LEFT.with(|left| *left.borrow_mut() = Some(deep(length)));
        });
        ends.unwrap().join().unwrap();
    }
}

/// Panics when it is dropped.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

#[test]
fn a_panic_while_a_graph_is_dropped_keeps_no_later_graph_alive() {
    let x = leaf(1.0);
    for _ in 0..100 {
        let held = PanicsInDrop;
        let y = identity(&x, move |grad| {
            let _ = &held;
            Ok(grad.clone())
        });
        assert!(catch_unwind(AssertUnwindSafe(|| drop(y))).is_err());
    }
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let y = identity(&x, move |grad| {
        let _ = &held;
        Ok(grad.clone())
    });
    drop(y);
    assert_eq!(Arc::strong_count(&alive), 1);
}
