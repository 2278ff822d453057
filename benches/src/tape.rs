//! The least that a tape can be, written by hand: what gradpact's nodes are compared with.
//!
//! A node is an `Arc` with a number, its parents and a boxed function that keeps one saved tensor. Backward takes the waiting node
//! with the highest number from a heap; gradients that wait at one node are added. A leaf keeps its gradient behind a lock. Chains are
//! dropped without recursion. There is nothing else: no dtypes, no shapes, no checks, no errors, no hooks, no freeing of what
//! was saved. But nothing is left out either of what makes a backward right on every graph.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

/// The numbers in a tensor: shared, immutable.
pub type Values = Arc<[f32]>;

/// What is computed from a gradient: one for each parent.
pub type Gradients = SmallVec<[Values; 2]>;

type Formula = Box<dyn Fn(Values) -> Gradients + Send + Sync>;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Values, and the node that they come from.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The numbers.
    pub values: Values,
    node: Arc<Node>,
}

/// A step of the forward, with what is needed to go back over it.
struct Node {
    number: u64,
    parents: SmallVec<[Arc<Self>; 2]>,
    kind: Kind,
}

enum Kind {
    Leaf(Mutex<Option<Values>>),
    Step(Formula),
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Node {
    fn new(parents: SmallVec<[Arc<Self>; 2]>, kind: Kind) -> Arc<Self> {
        Arc::new(Self { number: NEXT.fetch_add(1, Ordering::Relaxed), parents, kind })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut dropped = std::mem::take(&mut self.parents);
        while let Some(node) = dropped.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                dropped.append(&mut node.parents);
            }
        }
    }
}

impl Tensor {
    /// A tensor whose gradient is kept.
    pub fn leaf(values: &[f32]) -> Self {
        Self { values: values.into(), node: Node::new(SmallVec::new(), Kind::Leaf(Mutex::new(None))) }
    }

    /// A tensor computed from `parents`.
    pub fn step(
        values: Values,
        parents: &[&Self],
        formula: impl Fn(Values) -> Gradients + Send + Sync + 'static,
    ) -> Self {
        let parents = parents.iter().map(|parent| Arc::clone(&parent.node)).collect();
        Self { values, node: Node::new(parents, Kind::Step(Box::new(formula))) }
    }

    /// The function of the benchmarks: passes its first input on, and its gradient to all. It saves the input, as one whose
    /// gradient depends on it would.
    pub fn pass(inputs: &[&Self]) -> Self {
        let (values, count) = (Arc::clone(&inputs[0].values), inputs.len());
        let saved = Arc::clone(&values);
        Self::step(values, inputs, move |grad| {
            std::hint::black_box(&saved);
            std::iter::repeat_n(grad, count).collect()
        })
    }

    /// The gradient that a leaf has; takes it away.
    pub fn take_grad(&self) -> Option<Values> {
        match &self.node.kind {
            Kind::Leaf(grad) => grad.lock().unwrap_or_else(PoisonError::into_inner).take(),
            Kind::Step(_) => None,
        }
    }

    /// Sends `seed` from this tensor to all leaves.
    pub fn backward(&self, seed: &[f32]) {
        let mut heap = BinaryHeap::new();
        heap.push(Waiting { node: &self.node, grad: seed.into() });
        while let Some(Waiting { node, mut grad }) = heap.pop() {
            while let Some(next) = heap.peek_mut().filter(|next| next.node.number == node.number) {
                grad = sum(grad, &PeekMut::pop(next).grad);
            }
            match &node.kind {
                Kind::Leaf(kept) => {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    *kept = Some(match kept.take() {
                        Some(before) => sum(before, &grad),
                        None => grad,
                    });
                }
                Kind::Step(formula) => {
                    let grads = formula(grad);
                    heap.extend(node.parents.iter().zip(grads).map(|(node, grad)| Waiting { node, grad }));
                }
            }
        }
    }
}

fn sum(mut a: Values, b: &Values) -> Values {
    match Arc::get_mut(&mut a) {
        Some(numbers) => numbers.iter_mut().zip(&**b).for_each(|(a, b)| *a += b),
        None => a = a.iter().zip(&**b).map(|(a, b)| a + b).collect(),
    }
    a
}

/// A gradient that waits at a node; the heap puts the highest number first.
struct Waiting<'g> {
    node: &'g Arc<Node>,
    grad: Values,
}

impl PartialEq for Waiting<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.node.number == other.node.number
    }
}

impl Eq for Waiting<'_> {}

impl PartialOrd for Waiting<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.node.number.cmp(&other.node.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_that_meet_are_added() {
        let x = Tensor::leaf(&[1.0, 2.0]);
        let (a, b) = (Tensor::pass(&[&x]), Tensor::pass(&[&x]));
        Tensor::pass(&[&a, &b, &x]).backward(&[1.0, 10.0]);
        assert_eq!(x.take_grad().as_deref(), Some(&[3.0, 30.0][..]));
        assert!(x.take_grad().is_none());
    }

    #[test]
    fn a_node_waits_for_all_its_gradients() {
        // Were `a` visited before `b`, its gradient would reach the leaf twice.
        let x = Tensor::leaf(&[1.0]);
        let a = Tensor::pass(&[&x]);
        let b = Tensor::pass(&[&a]);
        Tensor::pass(&[&b, &a]).backward(&[1.0]);
        assert_eq!(x.take_grad().as_deref(), Some(&[2.0][..]));
    }

    #[test]
    fn a_long_chain_is_dropped_on_a_small_stack() {
        let x = Tensor::leaf(&[1.0]);
        let end = (0..200_000).fold(x, |y, _| Tensor::pass(&[&y]));
        end.backward(&[1.0]);
        drop(end);
    }
}
