//! Names that users give to parts of their model, shown beside nodes in reports.

use core::cell::{Cell, RefCell};

use super::node::Node;
use super::scoped::within;
use crate::engine::Engine;

/// Under which name a node's label is kept among its metadata.
const KEY: &str = "label";

thread_local! {
    static LABELS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body`; nodes that this thread creates in it are labelled `name`, inside other labels `outer/name`.
///
/// The label is metadata (a `String` named `label`), shown by audits and pictures. It changes nothing else.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
/// use gradpact::autograd::label;
///
/// let x = Tensor::<f32>::scalar(2.0).requiring_grad()?;
/// let y = label("encoder", || label("layer 1", || x.exp()))?;
/// assert_eq!(y.as_dyn().grad_fn().unwrap().label().as_deref(), Some("encoder/layer 1"));
/// # Ok::<(), Error>(())
/// ```
pub fn label<R>(name: &str, body: impl FnOnce() -> R) -> R {
    let path = LABELS.with_borrow(|labels| match labels.last() {
        Some(outer) => format!("{outer}/{name}"),
        None => name.to_owned(),
    });
    within(&LABELS, &COUNT, path, body)
}

/// Labels a new node, if this thread is in a labelled region.
pub(super) fn attach<E: Engine>(node: &Node<E>) {
    if COUNT.get() > 0 {
        let label = LABELS.with_borrow(|labels| labels.last().cloned());
        label.into_iter().for_each(|label| node.set_metadata(KEY, label));
    }
}

impl<E: Engine> Node<E> {
    /// The [`label`](super::label()) that it was created under, or that was set as metadata `label`.
    pub fn label(&self) -> Option<String> {
        self.metadata::<String>(KEY).map(|label| (*label).clone())
    }
}
