//! Edges of the graph, and how a long chain of them is dropped.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU64, Ordering};

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
    /// At a non-differentiable output of this Function.
    Function {
        /// The Function's name.
        function: &'static str,
        /// Which output.
        position: usize,
    },
    /// At a call of `detach`.
    Detached,
    /// In a `no_grad` region, or in a backward that is not recorded.
    NoGrad,
    /// Inside the `forward` of a Function whose inputs are tracked. The number is the tensor's own, shared by its clones:
    /// by it a saved tensor is known to be one of the outputs.
    InForward(u64),
}

impl Cut {
    /// The cut of a tensor made inside a forward.
    pub(super) fn in_forward() -> Self {
        // One counter for all threads: a value may be made in one forward and saved in another, elsewhere.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self::InForward(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { function, position } => {
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
}

impl<E: Engine> Edge<E> {
    /// An edge to input `input_nr` of `node`.
    pub(crate) fn new(node: NodeRef<E>, input_nr: u32) -> Self {
        Self { node: Some(node), input_nr }
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
        Self { node: self.node.clone(), input_nr: self.input_nr }
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
pub(super) fn drop_in_turn<T: 'static>(value: T) {
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
