//! A scope that sees every node as it is created, to attach metadata or register hooks.
//!
//! An extension point for metadata. It has nothing to do with the dtype contract: it sees it, and cannot change it.

use core::any::Any;
use core::cell::{Cell, RefCell};
use std::rc::Rc;

use super::graph_task::guarded;
use super::node::NodeRef;
use super::scoped::{Restore, within};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// A hook with the engine erased: the argument is a `NodeRef<E>` of some engine.
type ErasedHook = Rc<dyn Fn(&dyn Any) -> Result<()>>;

thread_local! {
    static HOOKS: RefCell<Vec<ErasedHook>> = const { RefCell::new(Vec::new()) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `body`; every node of engine `E` that this thread creates in it is shown to `hook`, once, when it is complete.
///
/// Scopes nest, the outermost hook first. Leaves are nodes too, and so are nodes of a backward with `create_graph`; the leaf
/// that an optimizer puts in the place of another is not shown again, since it has that one's hooks and metadata. An
/// error or panic of the hook is an error of the operation that created the node, which is then not recorded. A hook that creates
/// a node itself gets an error.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
///
/// let x = DynTensor::from_vec(vec![2.0_f32], [1])?.requiring_grad()?;
/// let name = |node: &gradpact::autograd::NodeRef<gradpact::Cpu>| {
///     node.set_metadata("layer", "first".to_owned());
///     Ok(())
/// };
/// let y = gradpact::autograd::node_creation_hook(name, || x.mul(&x))?;
/// let node = y.grad_fn().unwrap();
/// assert_eq!(node.metadata::<String>("layer").as_deref().map(String::as_str), Some("first"));
/// # Ok::<(), Error>(())
/// ```
pub fn node_creation_hook<E: Engine, R>(
    hook: impl Fn(&NodeRef<E>) -> Result<()> + 'static,
    body: impl FnOnce() -> R,
) -> R {
    let erased = move |node: &dyn Any| node.downcast_ref::<NodeRef<E>>().map_or(Ok(()), &hook);
    within(&HOOKS, &COUNT, Rc::new(erased), body)
}

/// Shows a new node to the hooks of this thread.
pub(super) fn announce<E: Engine>(node: &NodeRef<E>) -> Result<()> {
    if COUNT.get() == 0 { Ok(()) } else { run_hooks(node) }
}

#[cold]
fn run_hooks<E: Engine>(node: &NodeRef<E>) -> Result<()> {
    if RUNNING.get() {
        return Err(Error::NodeInCreationHook(node.name().to_owned()));
    }
    let _running = Restore::after(&RUNNING, true);
    // A copy: a hook may open a scope of its own.
    let hooks = HOOKS.with(|hooks| hooks.borrow().clone());
    hooks.iter().try_for_each(|hook| guarded(node.name(), || hook(node)))
}
