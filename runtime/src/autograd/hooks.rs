//! Functions of the user's that see gradients on their way: at a tensor, before and after a node, at a leaf when it has
//! accumulated. They see the declared dtype and may replace a gradient, but not change its dtype or shape.

use core::any::Any;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::grad_cell::GradCell;
use super::node::Node;
use super::tensor::{DynTensor, Gradients};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// A hook on the gradient of a tensor: returns another gradient, or `None` to leave it.
pub(super) type TensorHook<E> = dyn Fn(&DynTensor<E>) -> Result<Option<DynTensor<E>>> + Send + Sync;

/// A hook before a node: sees the gradients of its outputs.
pub(super) type PreHook<E> = dyn Fn(&Gradients<E>) -> Result<Option<Gradients<E>>> + Send + Sync;

/// A hook after a node: sees the gradients of its inputs, admitted to their edges, and of its outputs.
pub(super) type PostHook<E> =
    dyn Fn(&Gradients<E>, &Gradients<E>) -> Result<Option<Gradients<E>>> + Send + Sync;

/// A hook at a leaf whose gradient has just grown.
pub(super) type LeafHook<E> = dyn Fn(&DynTensor<E>) -> Result<()> + Send + Sync;

/// Hooks of one kind, in order of registration.
struct Registry<F: ?Sized>(Arc<Mutex<Entries<F>>>);

struct Entries<F: ?Sized> {
    next: u64,
    hooks: BTreeMap<u64, Arc<F>>,
}

impl<F: ?Sized> Default for Registry<F> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Entries { next: 0, hooks: BTreeMap::new() })))
    }
}

impl<F: ?Sized + Send + Sync + 'static> Registry<F> {
    fn add(&self, hook: Arc<F>) -> HookHandle {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = entries.next;
        entries.next += 1;
        entries.hooks.insert(key, hook);
        let registry: Weak<Mutex<Entries<F>>> = Arc::downgrade(&self.0);
        HookHandle { registry, key }
    }

    /// The hooks as they are now; run outside the lock, so that a hook may remove itself.
    fn snapshot(&self) -> Vec<Arc<F>> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.hooks.values().cloned().collect()
    }
}

trait Remove: Send + Sync {
    fn remove(&self, key: u64);
}

impl<F: ?Sized + Send + Sync> Remove for Mutex<Entries<F>> {
    fn remove(&self, key: u64) {
        let removed = self.lock().unwrap_or_else(PoisonError::into_inner).hooks.remove(&key);
        // Outside the lock: what the hook holds may be large.
        drop(removed);
    }
}

/// Takes a hook away again. Dropping the handle leaves the hook in place.
#[derive(Clone)]
pub struct HookHandle {
    registry: Weak<dyn Remove>,
    key: u64,
}

impl HookHandle {
    /// Removes the hook; without effect if it is removed already or its tensor is gone.
    pub fn remove(&self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.remove(self.key);
        }
    }
}

impl fmt::Debug for HookHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HookHandle({})", self.key)
    }
}

/// Values that users attached to a node.
type Metadata = BTreeMap<String, Arc<dyn Any + Send + Sync>>;

/// All that users have attached to one node: hooks and metadata.
pub(super) struct NodeHooks<E: Engine> {
    metadata: Mutex<Metadata>,
    /// By input of the node, that is by output of its forward.
    tensor: Vec<Registry<TensorHook<E>>>,
    /// The gradients of non-leaves that somebody asked to keep.
    retained: Vec<OnceLock<GradCell<E>>>,
    before: Registry<PreHook<E>>,
    after: Registry<PostHook<E>>,
    leaf: Registry<LeafHook<E>>,
}

impl<E: Engine> NodeHooks<E> {
    pub(super) fn new(inputs: usize) -> Self {
        Self {
            metadata: Mutex::default(),
            tensor: (0..inputs).map(|_| Registry::default()).collect(),
            retained: (0..inputs).map(|_| OnceLock::new()).collect(),
            before: Registry::default(),
            after: Registry::default(),
            leaf: Registry::default(),
        }
    }

    pub(super) fn set_metadata(&self, name: &str, value: Arc<dyn Any + Send + Sync>) {
        let before =
            self.metadata.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value);
        // Outside the lock: the value may look at the node when it is dropped.
        drop(before);
    }

    pub(super) fn metadata(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        self.metadata.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Runs the hooks of each tensor, and keeps the gradients that were asked to be kept.
    pub(super) fn run_tensor_hooks(&self, node: &Node<E>, grads: &mut Gradients<E>) -> Result<()> {
        for (input, slot) in grads.iter_mut().enumerate() {
            let Some(grad) = slot else { continue };
            for hook in self.tensor[input].snapshot() {
                if let Some(new) = hook(grad)? {
                    *grad = unchanged(node, "tensor hook", grad, new)?;
                }
            }
            if let Some(kept) = self.retained[input].get() {
                kept.add(grad, || node.inputs()[input].contract().grad_dtype)?;
            }
        }
        Ok(())
    }

    /// Runs the hooks before the backward of the node.
    pub(super) fn run_before(&self, node: &Node<E>, grads: &mut Gradients<E>) -> Result<()> {
        for hook in self.before.snapshot() {
            if let Some(new) = hook(grads)? {
                *grads = all_unchanged(node, "prehook", grads, new)?;
            }
        }
        Ok(())
    }

    /// Runs the hooks after the backward on the admitted gradients of the inputs.
    pub(super) fn run_after(
        &self,
        node: &Node<E>,
        grad_inputs: &mut Gradients<E>,
        grad_outputs: &Gradients<E>,
    ) -> Result<()> {
        for hook in self.after.snapshot() {
            if let Some(new) = hook(grad_inputs, grad_outputs)? {
                *grad_inputs = all_unchanged(node, "posthook", grad_inputs, new)?;
            }
        }
        Ok(())
    }

    pub(super) fn has_after(&self) -> bool {
        !self.after.0.lock().unwrap_or_else(PoisonError::into_inner).hooks.is_empty()
    }

    /// Runs the hooks of a leaf whose gradient has grown.
    pub(super) fn run_leaf(&self, leaf: &DynTensor<E>) -> Result<()> {
        self.leaf.snapshot().iter().try_for_each(|hook| hook(leaf))
    }
}

/// The replacement, if it has the dtype and the shape of what it replaces.
fn unchanged<E: Engine>(
    node: &Node<E>,
    kind: &'static str,
    before: &DynTensor<E>,
    after: DynTensor<E>,
) -> Result<DynTensor<E>> {
    if before.dtype() == after.dtype() && before.shape() == after.shape() {
        return Ok(after);
    }
    Err(Error::HookChanged {
        kind,
        function: node.name().to_owned(),
        expected: format!("{} {}", before.dtype(), before.shape()),
        got: format!("{} {}", after.dtype(), after.shape()),
    })
}

fn all_unchanged<E: Engine>(
    node: &Node<E>,
    kind: &'static str,
    before: &Gradients<E>,
    after: Gradients<E>,
) -> Result<Gradients<E>> {
    let changed = |expected: String, got: String| Error::HookChanged {
        kind,
        function: node.name().to_owned(),
        expected,
        got,
    };
    if before.len() != after.len() {
        return Err(changed(format!("{} gradients", before.len()), format!("{}", after.len())));
    }
    let checked = before.iter().zip(after).enumerate().map(|(position, pair)| match pair {
        (Some(before), Some(after)) => unchanged(node, kind, before, after).map(Some),
        (_, None) => Ok(None),
        (None, Some(_)) => Err(changed(format!("no gradient at position {position}"), "one".to_owned())),
    });
    checked.collect()
}

impl<E: Engine> Node<E> {
    /// Registers a hook that runs before this node's backward, on the gradients of its forward's outputs.
    ///
    /// It sees them in the declared dtypes, after the hooks of the tensors, and may replace them by others of the same
    /// dtypes and shapes.
    pub fn register_prehook(
        &self,
        hook: impl Fn(&Gradients<E>) -> Result<Option<Gradients<E>>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.hooks().before.add(Arc::new(hook))
    }

    /// Registers a hook that runs after this node's backward, on the gradients of the forward's inputs (in the dtypes that
    /// the edges behind them expect) and of its outputs.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Gradients<E>, &Gradients<E>) -> Result<Option<Gradients<E>>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.hooks().after.add(Arc::new(hook))
    }
}

impl<E: Engine> DynTensor<E> {
    /// Registers a hook on this tensor's gradient, which it sees summed and in the declared dtype, once per backward.
    ///
    /// It may return another gradient of the same dtype and shape.
    ///
    /// # Errors
    /// [`Error::NoGraph`] if the tensor is untracked.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Self) -> Result<Option<Self>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        let edge = self.origin().edge().ok_or_else(|| Error::NoGraph(self.untracked_reason()))?;
        Ok(edge.node().hooks().tensor[edge.input_nr as usize].add(Arc::new(hook)))
    }

    /// Asks to keep the gradient of this tensor, which is no leaf, in [`grad`](Self::grad): in the declared dtype, added up
    /// over backwards.
    ///
    /// A gradient that is kept with [`create_graph`](super::BackwardOptions::create_graph) has a graph that leads back to
    /// this tensor, and both live until [`zero_grad`](Self::zero_grad).
    ///
    /// # Errors
    /// [`Error::NoGraph`] if the tensor is untracked.
    pub fn retain_grad(&self) -> Result<()> {
        let edge = self.origin().edge().ok_or_else(|| Error::NoGraph(self.untracked_reason()))?;
        if self.leaf().is_none() {
            edge.node().hooks().retained[edge.input_nr as usize].get_or_init(GradCell::new);
        }
        Ok(())
    }

    /// Where [`retain_grad`](Self::retain_grad) keeps the gradient.
    pub(super) fn retained(&self) -> Option<&GradCell<E>> {
        let edge = self.origin().edge()?;
        edge.node().existing_hooks()?.retained.get(edge.input_nr as usize)?.get()
    }

    /// Registers a hook that runs when a backward has added to this leaf's gradient; it is given the leaf.
    ///
    /// # Errors
    /// [`Error::NotALeaf`].
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Self) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        let not_a_leaf =
            || Error::NotALeaf { call: "register_post_accumulate_grad_hook", producer: self.describe() };
        let edge = self.origin().edge().filter(|_| self.leaf().is_some()).ok_or_else(not_a_leaf)?;
        Ok(edge.node().hooks().leaf.add(Arc::new(hook)))
    }
}
