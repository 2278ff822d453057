//! Edges of the graph, and how a long chain of them is dropped.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::grad_mode::{self, GradMode};
use super::node::NodeRef;
use super::tensor::DynTensor;
use crate::engine::Engine;

/// Where a tensor comes from, as far as gradients are concerned.
#[derive(Clone)]
pub enum Origin<E: Engine> {
    /// Data: nobody asked for its gradient.
    Data,
    /// It was computed from tracked tensors, but its gradient cannot get back to them.
    Cut(Cut),
    /// Not there: an optional input that was not given.
    Absent,
    /// Its gradient goes to an input of a node.
    Edge(Edge<E>),
}

/// Where the graph behind an untracked tensor ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At a non-differentiable output of a Function.
    Output(&'static OutputName),
    /// At a call of `detach`.
    Detached,
    /// In a `no_grad` region, or in a backward that is not recorded.
    NoGrad,
    /// Inside the `forward` of a Function whose inputs are tracked. The number is the tensor's own, shared by its clones:
    /// by it a saved tensor is known to be one of the outputs.
    InForward(u64),
}

/// An output, by the name of its Function and its position.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputName {
    /// The Function's name.
    pub function: &'static str,
    /// Which output.
    pub position: usize,
}

/// Every name that a cut was made of, kept for good: there are as many as there are such outputs in the program's text, and a
/// cut is small because of it.
static OUTPUT_NAMES: Mutex<BTreeSet<&'static OutputName>> = Mutex::new(BTreeSet::new());

impl Cut {
    /// The cut of a non-differentiable output.
    pub(crate) fn at_output(function: &'static str, position: usize) -> Self {
        let name = OutputName { function, position };
        let mut names = OUTPUT_NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        Self::Output(match names.get(&name) {
            Some(kept) => kept,
            None => {
                let kept: &'static OutputName = Box::leak(Box::new(name));
                names.insert(kept);
                kept
            }
        })
    }

    /// The cut of a tensor made inside a forward.
    pub(super) fn in_forward() -> Self {
        // One counter for all threads: a value may be made in one forward and saved in another, elsewhere. A thread takes
        // numbers from it a block at a time.
        const BLOCK: u64 = 1 << 16;
        static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);
        thread_local! {
            static NEXT: Cell<u64> = const { Cell::new(0) };
        }
        let next = match NEXT.get() {
            next if next % BLOCK == 0 => NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) * BLOCK,
            next => next,
        };
        NEXT.set(next + 1);
        Self::InForward(next)
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(OutputName { function, position }) => {
                write!(f, "output {position} of `{function}` is not differentiable")
            }
            Self::Detached => f.write_str("`detach` was called"),
            Self::NoGrad => {
                f.write_str("it was computed under `no_grad`, or in a backward without `create_graph`")
            }
            Self::InForward(_) => f.write_str("it was computed inside the forward of a Function"),
        }
    }
}

impl<E: Engine> Origin<E> {
    /// The origin of a result that was not recorded: why not, as far as its inputs and the grad mode tell.
    pub(crate) fn of_unrecorded<'a>(inputs: impl Iterator<Item = &'a DynTensor<E>>) -> Self {
        let (mut origin, mode) = (Self::Data, grad_mode::current());
        for input in inputs {
            match (input.origin(), mode) {
                (Self::Edge(_), GradMode::InForward) | (Self::Cut(Cut::InForward(_)), _) => {
                    // What depends on an unrecorded intermediate is one itself, whatever else it depends on.
                    return Self::Cut(Cut::in_forward());
                }
                (Self::Edge(_), _) => origin = Self::Cut(Cut::NoGrad),
                (&Self::Cut(cut), _) => origin = Self::Cut(cut),
                (Self::Data | Self::Absent, _) => {}
            }
        }
        origin
    }

    /// The edge, if gradients are wanted.
    pub fn edge(&self) -> Option<&Edge<E>> {
        match self {
            Self::Edge(edge) => Some(edge),
            _ => None,
        }
    }
}

impl<E: Engine> fmt::Debug for Origin<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data => f.write_str("Data"),
            Self::Cut(cut) => write!(f, "Cut({cut})"),
            Self::Absent => f.write_str("Absent"),
            Self::Edge(edge) => edge.fmt(f),
        }
    }
}

/// Which input of which node a gradient goes to. A node's inputs are the outputs of its forward.
pub struct Edge<E: Engine> {
    // `None` only while it is being dropped.
    node: Option<NodeRef<E>>,
    /// Which of the node's inputs.
    pub input_nr: u32,
    // Its other values tell the other kinds of `Origin`, which is no larger than an edge because of it.
    niche: Niche,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Niche {
    Edge = 1,
}

impl<E: Engine> Edge<E> {
    /// An edge to input `input_nr` of `node`.
    pub(crate) fn new(node: NodeRef<E>, input_nr: u32) -> Self {
        Self { node: Some(node), input_nr, niche: Niche::Edge }
    }

    /// The node that the gradient goes to.
    pub fn node(&self) -> &NodeRef<E> {
        match &self.node {
            Some(node) => node,
            // The node is taken out by `drop` alone, after which nobody can call this.
            None => {
                #[expect(clippy::unreachable, reason = "the field is emptied only by drop")]
                {
                    unreachable!("an edge without a node")
                }
            }
        }
    }
}

impl<E: Engine> Clone for Edge<E> {
    fn clone(&self) -> Self {
        Self { node: self.node.clone(), input_nr: self.input_nr, niche: self.niche }
    }
}

impl<E: Engine> fmt::Debug for Edge<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edge(input {} of {})", self.input_nr, self.node().name())
    }
}

/// How many nodes may drop inside one another before the next ones wait for their turn.
const DROP_DEPTH: u32 = 64;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    // Without a destructor, and so still there when other thread-locals drop graphs while their thread ends. Whenever no
    // drop is under way it is empty and holds no memory.
    static WAITING: RefCell<ManuallyDrop<Vec<Box<dyn Any>>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Counts a drop as one deeper until it is done, also if the user's struct panics in its own.
struct Deeper {
    before: u32,
}

impl Deeper {
    fn enter(before: u32) -> Self {
        DEPTH.set(before + 1);
        Self { before }
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        DEPTH.set(self.before);
    }
}

/// The next node that was put aside; after the last one the list's memory is freed.
fn next_waiting() -> Option<Box<dyn Any>> {
    WAITING.with_borrow_mut(|waiting| {
        let next = waiting.pop();
        if next.is_none() {
            **waiting = Vec::new();
        }
        next
    })
}

/// Drops what may be the last that holds a node, and with it that node's edges, saved tensors, hooks and metadata and whatever
/// the user's struct holds, and so on to the leaves: recursion as deep as the graph, if left alone. NOTE [Drop in turns]: at
/// a depth of `DROP_DEPTH` it is put aside, and the outermost drop takes it up when it is done. So the stack stays small on
/// every way from edge to edge, also through fields that this crate cannot see.
pub fn drop_in_turn<T: 'static>(value: T) {
    let depth = DEPTH.get();
    if depth >= DROP_DEPTH {
        WAITING.with_borrow_mut(|waiting| waiting.push(Box::new(value)));
        return;
    }
    let _deeper = Deeper::enter(depth);
    drop(value);
    if depth == 0 {
        while let Some(next) = next_waiting() {
            drop(next);
        }
    }
}

impl<E: Engine> Drop for Edge<E> {
    fn drop(&mut self) {
        let Some(node) = self.node.take() else { return };
        if NodeRef::strong_count(&node) == 1 {
            drop_in_turn(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Cpu;

    #[test]
    fn an_origin_is_no_larger_than_an_edge() {
        assert_eq!(size_of::<Origin<Cpu>>(), size_of::<Edge<Cpu>>());
    }

    #[test]
    fn cuts_at_the_same_output_are_equal_and_say_which_it_is() {
        let cut = Cut::at_output("TopK", 1);
        assert_eq!(cut, Cut::at_output("TopK", 1));
        assert_ne!(cut, Cut::at_output("TopK", 0));
        assert_eq!(cut.to_string(), "output 1 of `TopK` is not differentiable");
    }
}
