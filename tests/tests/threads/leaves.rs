//! Threads that add to, read, replace and forget the gradient of one leaf.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;
use std::{cell::Cell, thread};

use gradpact::autograd::{NodeRef, node_creation_hook};
use gradpact::prelude::*;
use gradpact::{Cpu, backward};

use super::on_threads;

const THREADS: usize = 4;
const ROUNDS: usize = 500;

fn constant(dtype: DType, value: f64) -> DynTensor {
    DynTensor::from_slice(&[value], [1]).unwrap().cast(dtype).unwrap()
}

fn leaf() -> DynTensor {
    constant(DType::F32, 1.0).requiring_grad().unwrap()
}

fn value(tensor: &DynTensor) -> f64 {
    tensor.to_f64_vec().unwrap()[0]
}

/// Adds one to the gradient of a leaf.
fn add(x: &DynTensor) {
    x.backward_with(&constant(DType::F32, 1.0), BackwardOptions::new()).unwrap();
}

/// Fails if `body` does not end: a deadlock must not look like a slow test.
fn ends(body: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let running = thread::spawn(move || {
        body();
        done.send(()).unwrap();
    });
    if ended.recv_timeout(Duration::from_secs(120)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it did not end within two minutes");
    }
    running.join().unwrap();
}

#[test]
fn an_assigned_gradient_is_added_to_and_no_addition_after_it_is_lost() {
    const ASSIGNED: f64 = 1_000_000.0;
    ends(|| {
        for _ in 0..20 {
            let x = leaf();
            on_threads(THREADS + 1, |number| {
                if number == THREADS {
                    x.set_grad(Some(&constant(DType::F32, ASSIGNED))).unwrap();
                } else {
                    (0..ROUNDS).for_each(|_| add(&x));
                }
            });
            let after = value(&x.grad().unwrap());
            let added = after - ASSIGNED;
            assert!((0.0..=(THREADS * ROUNDS) as f64).contains(&added), "the assignment was lost: {after}");
            on_threads(THREADS, |_| (0..ROUNDS).for_each(|_| add(&x)));
            assert_eq!(value(&x.grad().unwrap()), after + (THREADS * ROUNDS) as f64);
        }
    });
}

#[test]
fn gradients_are_forgotten_and_read_while_others_add() {
    ends(|| {
        let x = leaf();
        let adding = AtomicBool::new(true);
        on_threads(THREADS + 2, |number| match number {
            0 => {
                for _ in 0..THREADS * ROUNDS / 10 {
                    x.zero_grad();
                    thread::yield_now();
                }
                adding.store(false, Relaxed);
            }
            1 => {
                while adding.load(Relaxed) {
                    let seen = x.grad().map_or(0.0, |grad| value(&grad));
                    assert!(
                        seen.fract() == 0.0 && (0.0..=(THREADS * ROUNDS) as f64).contains(&seen),
                        "{seen}"
                    );
                }
            }
            _ => (0..ROUNDS).for_each(|_| add(&x)),
        });
        x.zero_grad();
        assert!(x.grad().is_none());
        on_threads(THREADS, |_| (0..ROUNDS).for_each(|_| add(&x)));
        assert_eq!(value(&x.grad().unwrap()), (THREADS * ROUNDS) as f64);
    });
}

#[test]
fn a_leaf_may_be_reset_assigned_and_added_to_by_its_own_hooks_on_many_threads() {
    ends(|| {
        let x = leaf();
        let hook = |leaf: &DynTensor| {
            leaf.zero_grad();
            leaf.set_grad(Some(&constant(DType::F32, 0.5)))
        };
        let handle = x.register_post_accumulate_grad_hook(hook).unwrap();
        on_threads(THREADS, |_| (0..ROUNDS).for_each(|_| add(&x)));
        assert_eq!(value(&x.grad().unwrap()), 0.5, "the last to run was a hook");
        handle.remove();
        add(&x);
        assert_eq!(value(&x.grad().unwrap()), 1.5);
    });
}

#[test]
fn whoever_changes_the_gradient_dtype_while_others_add_finds_gradients_in_it() {
    ends(|| {
        let x = leaf();
        for _ in 0..ROUNDS {
            x.zero_grad();
            on_threads(2, |number| match number {
                0 => add(&x),
                // Refused if the gradient is there already.
                _ => drop(x.set_grad_dtype(GradDType::Exactly(DType::F16))),
            });
            let kept = GradDType::Exactly(x.grad().unwrap().dtype());
            assert_eq!(x.grad_dtype(), Some(kept));
            x.zero_grad();
            x.reset_grad_dtype().unwrap();
        }
    });
}

#[test]
fn a_gradient_dtype_that_changes_in_the_middle_of_an_addition_is_that_of_its_result() {
    let x = leaf();
    let seed = constant(DType::F32, 0.1);
    let recorded = BackwardOptions::new().create_graph();
    let tracked = seed.requiring_grad().unwrap();
    x.backward_with(&tracked, recorded).unwrap();
    // Adding to a recorded gradient makes a node, so that user code runs in the middle of it.
    let (inside, ran) = (x.clone(), std::rc::Rc::new(Cell::new(0)));
    let count = std::rc::Rc::clone(&ran);
    let change = move |_: &NodeRef<Cpu>| {
        count.set(count.get() + 1);
        inside.zero_grad();
        inside.set_grad_dtype(GradDType::Exactly(DType::F16))
    };
    node_creation_hook(change, || backward(&[(&x, Some(&tracked))], recorded)).unwrap();
    assert!(ran.get() > 0);
    let grad = x.grad().unwrap();
    assert_eq!((x.grad_dtype(), grad.dtype()), (Some(GradDType::Exactly(DType::F16)), DType::F16));
    assert_eq!(value(&grad), 0.0999755859375, "the second alone, rounded to f16");
    x.zero_grad();
}
