//! A node: one backward step, recorded when its forward ran.

use core::any::Any;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::accumulate_grad::AccumulateGrad;
use super::creation_hook;
use super::edge::{Edge, Origin, drop_in_turn};
use super::hooks::NodeHooks;
use super::label;
use super::metadata::{InputMetadata, Metadata};
use super::saved::SavedInfo;
use super::tensor::Gradients;
use crate::contract::Policy;
use crate::engine::{Cpu, Engine};
use crate::error::Result;
use crate::list::List;
use crate::observe::NodeInfo;

/// A shared node.
///
/// A Function whose struct is to hold one of an earlier node holds a tensor of it instead: a long chain of tensors is dropped
/// without recursion, one of nodes in such fields is not.
pub type NodeRef<E = Cpu> = Arc<Node<E>>;

/// What a node does with the gradients of its forward's outputs.
pub trait BackwardStep<E: Engine>: Send + Sync + 'static {
    /// The name of the Function.
    fn name(&self) -> &'static str;

    /// Maps the gradients of the outputs, admitted already, to gradients of the inputs.
    ///
    /// # Errors
    /// Whatever the Function reports.
    fn backward(&self, call: &BackwardCall<'_, E>, grads: Gradients<E>) -> Result<Gradients<E>>;

    /// Whether an output that nobody used is given zeros.
    fn materializes_grads(&self) -> bool {
        true
    }

    /// Whether `backward` is the user's code: its panics are caught, and its errors said to come from it.
    fn is_user_code(&self) -> bool {
        true
    }

    /// What it keeps for its backward, unless that has run and freed it.
    fn saved_tensors(&self) -> Vec<SavedInfo> {
        Vec::new()
    }

    /// The sink that this step is, if it is a leaf's.
    fn as_leaf(&self) -> Option<&AccumulateGrad<E>> {
        None
    }
}

/// What a step may know of the backward call that runs it.
pub struct BackwardCall<'a, E: Engine> {
    /// The node that runs.
    pub node: &'a NodeRef<E>,
    /// Whether saved tensors stay for another backward.
    pub retain_graph: bool,
    /// Whether this call refuses conversions to dtypes that nobody declared.
    pub(super) policy: Policy,
    /// The sequence numbers of the nodes that this call runs, if it does not run all.
    pub(super) needed: Option<&'a super::graph_task::Needed>,
}

impl<E: Engine> BackwardCall<'_, E> {
    /// Whether the gradient of an input is wanted by this call.
    pub fn needs_input_grad(&self, position: usize) -> bool {
        let edge = self.node.next_edges().get(position).and_then(Origin::edge);
        edge.is_some_and(|edge| self.needed.is_none_or(|needed| needed.wants(edge)))
    }
}

impl<E: Engine> fmt::Debug for BackwardCall<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackwardCall({}, retain_graph: {})", self.node.name(), self.retain_graph)
    }
}

/// NOTE [Sequence numbers]: a node is numbered after the nodes it depends on exist, from one counter for all threads.
/// So the numbers are a topological order of every graph, and taking the highest first visits a node after all nodes
/// that send it gradients, in the reverse order of creation.
static NEXT_SEQUENCE_NR: AtomicU64 = AtomicU64::new(0);

/// One backward step with its place in the graph.
///
/// Its *inputs* are gradients of its forward's outputs; its *next edges* lead to where the gradients of the forward's
/// inputs go.
pub struct Node<E: Engine, S: ?Sized = dyn BackwardStep<E>> {
    sequence_nr: u64,
    next_edges: List<Origin<E>>,
    inputs: Metadata,
    // Made when the first hook is registered: a node without hooks pays one empty pointer.
    // Shared by the leaves that a parameter was before and after a step.
    hooks: OnceLock<Arc<NodeHooks<E>>>,
    step: S,
}

impl<E: Engine, S: BackwardStep<E>> Node<E, S> {
    /// Records a step. `next_edges` has the origin of each input of the forward, `inputs` the metadata of each output.
    ///
    /// # Errors
    /// Those of node creation hooks.
    #[inline]
    pub fn record(step: S, next_edges: List<Origin<E>>, inputs: Metadata) -> Result<NodeRef<E>> {
        let node = Self::with_hooks(step, next_edges, inputs, OnceLock::new());
        label::attach(&node);
        creation_hook::announce(&node)?;
        Ok(node)
    }

    /// A node that has hooks from the start, and is shown to no creation hook: it takes the place of one that was.
    #[inline]
    pub(super) fn with_hooks(
        step: S,
        next_edges: List<Origin<E>>,
        inputs: Metadata,
        hooks: OnceLock<Arc<NodeHooks<E>>>,
    ) -> NodeRef<E> {
        let sequence_nr = NEXT_SEQUENCE_NR.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { sequence_nr, next_edges, inputs, hooks, step })
    }
}

impl<E: Engine> Node<E> {
    /// The name of the Function that was recorded.
    pub fn name(&self) -> &'static str {
        self.step.name()
    }

    /// Its number in the order of creation.
    pub fn sequence_nr(&self) -> u64 {
        self.sequence_nr
    }

    /// The origin of each input of the forward: where its gradient goes.
    pub fn next_edges(&self) -> &[Origin<E>] {
        &self.next_edges
    }

    /// What is known of each gradient it receives.
    pub fn inputs(&self) -> &[InputMetadata] {
        &self.inputs
    }

    /// Attaches a value to this node under a name, replacing an earlier one.
    pub fn set_metadata<T: Any + Send + Sync>(&self, name: &str, value: T) {
        self.hooks().set_metadata(name, Arc::new(value));
    }

    /// The value attached under a name, if it is a `T`.
    pub fn metadata<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        self.existing_hooks()?.metadata(name)?.downcast().ok()
    }

    /// What it keeps for its backward: dtype and shape of each saved tensor, and what hooks made of it. Empty when a backward
    /// has freed them.
    pub fn saved_tensors(&self) -> Vec<SavedInfo> {
        self.step.saved_tensors()
    }

    pub(super) fn hooks(&self) -> &NodeHooks<E> {
        self.hooks.get_or_init(|| Arc::new(NodeHooks::new(self.inputs.len())))
    }

    /// What users have attached so far, to be shared with another node; empty if that is nothing.
    pub(super) fn shared_hooks(&self) -> OnceLock<Arc<NodeHooks<E>>> {
        self.hooks.clone()
    }

    pub(super) fn existing_hooks(&self) -> Option<&NodeHooks<E>> {
        self.hooks.get().map(|hooks| &**hooks)
    }

    pub(super) fn step(&self) -> &dyn BackwardStep<E> {
        &self.step
    }

    /// What an observer is told of it.
    pub(super) fn info(&self) -> NodeInfo {
        NodeInfo {
            function: self.name(),
            sequence_nr: self.sequence_nr,
            label: self.label(),
            is_leaf: self.step.as_leaf().is_some(),
            is_user_code: self.step.is_user_code(),
        }
    }

    /// "output 0 of `Silu`", or "a leaf".
    pub(crate) fn describe(&self, input_nr: u32) -> String {
        match self.step.as_leaf() {
            Some(_) => "a leaf".to_owned(),
            None => format!("output {input_nr} of `{}`", self.name()),
        }
    }
}

/// Metadata and hooks may hold other nodes, beside any edge. See NOTE [Drop in turns] in `edge.rs`.
impl<E: Engine, S: ?Sized> Drop for Node<E, S> {
    fn drop(&mut self) {
        if let Some(hooks) = self.hooks.take() {
            drop_in_turn(hooks);
        }
    }
}

impl<E: Engine> Edge<E> {
    /// What is known of the gradient that goes here.
    pub fn metadata(&self) -> &InputMetadata {
        &self.node().inputs[self.input_nr as usize]
    }
}

impl<E: Engine> fmt::Debug for Node<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name())
            .field("sequence_nr", &self.sequence_nr)
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}
