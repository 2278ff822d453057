//! Graphs as deep and as wide as they come, on the stack of an ordinary thread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gradpact::{
    BackwardOptions, Context, DType, DynTensor, Function, Gradients, Inputs, Outputs, Result, apply, grad,
};
use gradpact_tests::toy::{self, Toy, ToyArray, ToyTensor};

const DEEP: usize = 1_000_000;
const WIDE: usize = 100_000;

/// Runs `body` on a thread with the 2 MiB that threads have by default.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(body).unwrap().join().unwrap();
}

/// How many structs that hold a clone of it are alive.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

struct Counted(Alive);

impl Alive {
    fn one(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the user's struct or its context holds on to, besides the inputs.
#[derive(Clone, Copy, PartialEq)]
enum Keeps {
    Nothing,
    InField,
    Saved,
    Stored,
    ItsOutput,
}

/// Passes its first input on, or the mean of its inputs. Counted while it is alive.
struct Pass {
    _counted: Counted,
    keeps: Keeps,
    other: Mutex<Option<ToyTensor>>,
}

impl Pass {
    fn new(alive: &Alive) -> Self {
        Self::keeping(alive, Keeps::Nothing, None)
    }

    fn keeping(alive: &Alive, keeps: Keeps, other: Option<ToyTensor>) -> Self {
        Self { _counted: alive.one(), keeps, other: Mutex::new(other) }
    }

    fn on(self, inputs: &[&ToyTensor]) -> ToyTensor {
        apply(self, inputs).unwrap()[0].clone()
    }
}

impl Function<Toy> for Pass {
    fn name(&self) -> &'static str {
        "Pass"
    }

    fn forward(&self, ctx: &mut Context<Toy>, inputs: &Inputs<'_, Toy>) -> Result<Outputs<Toy>> {
        let output = inputs.get(0)?.clone();
        match self.keeps {
            Keeps::Nothing | Keeps::InField => {}
            Keeps::Saved => {
                let kept: Vec<_> = self.other.lock().unwrap().take().into_iter().collect();
                ctx.save_for_backward(&kept[..]);
            }
            Keeps::Stored => ctx.store(self.other.lock().unwrap().take()),
            Keeps::ItsOutput => ctx.save_for_backward((inputs.get(0)?, &output)),
        }
        Ok(output.into())
    }

    fn backward(&self, ctx: &Context<Toy>, grads: Gradients<Toy>) -> Result<Gradients<Toy>> {
        let inputs = (0..).take_while(|&position| ctx.needs_input_grad(position)).count();
        let share = |grad: &ToyTensor| {
            let values = grad.array().values().iter().map(|value| value / inputs as f64);
            DynTensor::from_array(ToyArray::new(grad.dtype(), grad.shape(), values))
        };
        let grad = if inputs > 1 { grads[0].as_ref().map(share) } else { grads[0].clone() };
        Ok((0..inputs).map(|_| grad.clone()).collect())
    }
}

fn leaf() -> ToyTensor {
    toy::tensor(DType::F32, &[1.0]).requiring_grad().unwrap()
}

fn chain(alive: &Alive, leaf: &ToyTensor, length: usize) -> ToyTensor {
    (0..length).fold(leaf.clone(), |tensor, _| Pass::new(alive).on(&[&tensor]))
}

fn leaf_gradient(leaf: &ToyTensor) -> Vec<f64> {
    leaf.grad().unwrap().array().values().to_vec()
}

#[test]
fn a_chain_of_a_million_nodes_runs_forward_and_backward_and_is_dropped() {
    on_a_small_stack(|| {
        let (alive, leaf) = (Alive::default(), leaf());
        let root = chain(&alive, &leaf, DEEP);
        assert_eq!(alive.count(), DEEP);
        root.backward().unwrap();
        assert_eq!(leaf_gradient(&leaf), [1.0]);
        drop(root);
        assert_eq!(alive.count(), 0);
    });
}

#[test]
fn gradients_with_respect_to_the_middle_of_a_deep_chain_are_found_and_missing_ones_reported() {
    on_a_small_stack(|| {
        let (alive, leaf, other) = (Alive::default(), leaf(), leaf());
        let middle = chain(&alive, &leaf, WIDE);
        let root = chain(&alive, &middle, WIDE);
        let options = BackwardOptions::new().retain_graph();
        let found = grad(&[(&root, None)], &[&middle, &leaf], options).unwrap();
        assert!(found.iter().flatten().all(|grad| grad.array().values() == [1.0]));
        assert!(grad(&[(&root, None)], &[&other], options).is_err());
    });
}

#[test]
fn a_deep_chain_is_dropped_from_either_end() {
    on_a_small_stack(|| {
        let (alive, leaf) = (Alive::default(), leaf());
        for from_the_leaf_side in [true, false] {
            let mut all = vec![leaf.clone()];
            for _ in 0..WIDE {
                let next = Pass::new(&alive).on(&[all.last().unwrap()]);
                all.push(next);
            }
            if !from_the_leaf_side {
                all.reverse();
            }
            all.into_iter().for_each(drop);
            assert_eq!(alive.count(), 0);
        }
    });
}

#[test]
fn a_deep_chain_held_through_fields_saved_or_stored_values_of_the_users_structs_is_dropped() {
    for keeps in [Keeps::InField, Keeps::Saved, Keeps::Stored] {
        on_a_small_stack(move || {
            let (alive, leaf) = (Alive::default(), leaf());
            let mut last = leaf.clone();
            // Each node leads to the leaf by its edge; to the node before only by what it keeps.
            for _ in 0..2 * WIDE {
                last = Pass::keeping(&alive, keeps, Some(last)).on(&[&leaf]);
            }
            assert_eq!(alive.count(), 2 * WIDE, "all are kept alive by the last");
            last.backward_with(&last.detach(), BackwardOptions::new().retain_graph()).unwrap();
            assert_eq!(leaf_gradient(&leaf), [1.0], "and only the last one ran");
            drop(last);
            assert_eq!(alive.count(), 0);
        });
    }
}

#[test]
fn a_deep_chain_of_nodes_that_hold_the_one_before_in_metadata_or_a_hook_is_dropped() {
    on_a_small_stack(|| {
        for in_metadata in [true, false] {
            let alive = Alive::default();
            let chain = (0..WIDE).fold(leaf(), |before, _| {
                let after = Pass::new(&alive).on(&[&before]);
                let (node, held) = (after.grad_fn().unwrap(), Arc::clone(before.grad_fn().unwrap()));
                if in_metadata {
                    node.set_metadata("before", held);
                } else {
                    node.register_prehook(move |_| {
                        let _ = &held;
                        Ok(None)
                    });
                }
                after
            });
            assert_eq!(alive.count(), WIDE);
            drop(chain);
            assert_eq!(alive.count(), 0);
        }
    });
}

#[test]
fn backward_frees_saved_tensors_so_that_what_only_they_held_is_dropped_at_once() {
    on_a_small_stack(|| {
        let (alive, leaf) = (Alive::default(), leaf());
        let mut last = leaf.clone();
        for _ in 0..WIDE {
            last = Pass::keeping(&alive, Keeps::Saved, Some(last)).on(&[&leaf]);
        }
        last.backward().unwrap();
        assert_eq!(alive.count(), 1, "the node itself is still held by its output");
    });
}

#[test]
fn a_tensor_used_a_hundred_thousand_times_gathers_all_gradients() {
    on_a_small_stack(|| {
        let (alive, leaf) = (Alive::default(), leaf());
        let middle = Pass::new(&alive).on(&[&leaf]);
        let consumers: Vec<_> = (0..WIDE).map(|_| Pass::new(&alive).on(&[&middle])).collect();
        let root = Pass::new(&alive).on(&consumers.iter().collect::<Vec<_>>());
        let seed = toy::tensor(DType::F32, &[WIDE as f64]);
        root.backward_with(&seed, BackwardOptions::new()).unwrap();
        assert_eq!(leaf_gradient(&leaf), [WIDE as f64]);
        drop((root, middle, consumers));
        assert_eq!(alive.count(), 0);
    });
}

#[test]
fn a_ladder_of_a_hundred_thousand_diamonds_takes_each_node_once() {
    on_a_small_stack(|| {
        let (alive, leaf) = (Alive::default(), leaf());
        let mut rung = leaf.clone();
        for _ in 0..WIDE {
            let (left, right) = (Pass::new(&alive).on(&[&rung]), Pass::new(&alive).on(&[&rung]));
            rung = Pass::new(&alive).on(&[&left, &right]);
        }
        // There are 2^100000 paths: only a sum per node comes to an end.
        rung.backward().unwrap();
        assert_eq!(leaf_gradient(&leaf), [1.0]);
        drop(rung);
        assert_eq!(alive.count(), 0);
    });
}

#[test]
fn a_recorded_backward_of_a_deep_chain_can_be_dropped_too() {
    on_a_small_stack(|| {
        let leaf = leaf();
        let two = toy::tensor(DType::F32, &[1.0]).requiring_grad().unwrap();
        let root = (0..WIDE).fold(leaf.clone(), |tensor, _| toy::mul(&tensor, &two).unwrap());
        let first = grad(&[(&root, None)], &[&leaf], BackwardOptions::new().create_graph()).unwrap();
        let first = first[0].clone().unwrap();
        let second = grad(&[(&first, None)], &[&two], BackwardOptions::new()).unwrap();
        assert_eq!(second[0].as_ref().unwrap().array().values(), [WIDE as f64]);
        drop((root, first));
    });
}

#[test]
fn a_thousand_calls_without_backward_leave_no_node_alive() {
    for keeps in [Keeps::Nothing, Keeps::ItsOutput] {
        let (alive, leaf) = (Alive::default(), leaf());
        for _ in 0..1000 {
            drop(Pass::keeping(&alive, keeps, None).on(&[&leaf]));
        }
        assert_eq!(alive.count(), 0, "also where a node saves its own output");
    }
}

#[test]
fn a_thousand_calls_with_backward_leave_no_node_alive() {
    for (keeps, retain) in [(Keeps::Nothing, false), (Keeps::ItsOutput, false), (Keeps::ItsOutput, true)] {
        let (alive, leaf) = (Alive::default(), leaf());
        for _ in 0..1000 {
            let output = Pass::keeping(&alive, keeps, None).on(&[&leaf]);
            let options = BackwardOptions::new();
            let options = if retain { options.retain_graph() } else { options };
            output.backward_with(&output.detach(), options).unwrap();
        }
        assert_eq!(leaf_gradient(&leaf), [1000.0]);
        assert_eq!(alive.count(), 0);
    }
}

#[test]
fn a_function_that_is_not_recorded_is_dropped_at_once() {
    let (alive, leaf) = (Alive::default(), leaf());
    let constant = toy::tensor(DType::F32, &[1.0]);
    let _outputs = (
        Pass::new(&alive).on(&[&constant]),
        gradpact::no_grad(|| Pass::keeping(&alive, Keeps::ItsOutput, None).on(&[&leaf])),
    );
    assert_eq!(alive.count(), 0);
}
