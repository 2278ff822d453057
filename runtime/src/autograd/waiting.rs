//! The nodes that gradients wait at in one backward call, highest sequence number first.

use std::collections::BTreeMap;

use super::input_buffer::Sum;
use super::node::NodeRef;
use super::tensor::{DynTensor, Gradients};
use crate::engine::Engine;
use crate::error::Result;

/// A node with the gradients that have arrived at it.
pub(super) struct Pending<'g, E: Engine> {
    pub(super) node: &'g NodeRef<E>,
    /// The gradient of each input where one has arrived that can be delivered as it is.
    pub(super) grads: Gradients<E>,
    /// Where there is something to add or to round; nowhere at most nodes.
    pub(super) sums: Option<Box<Sums<E>>>,
}

/// Sums by input.
pub(super) type Sums<E> = BTreeMap<usize, Sum<E>>;

/// Nodes by sequence number, so that the next is the highest. See NOTE [Sequence numbers].
pub(super) struct Waiting<'g, E: Engine> {
    /// Kept out of the tree: a chain never touches that.
    highest: Option<Pending<'g, E>>,
    lower: BTreeMap<u64, Pending<'g, E>>,
}

impl<'g, E: Engine> Waiting<'g, E> {
    pub(super) fn new() -> Self {
        Self { highest: None, lower: BTreeMap::new() }
    }

    /// What waits at a node, which is visited from now on even if no gradient comes.
    #[inline]
    pub(super) fn at(&mut self, node: &'g NodeRef<E>) -> &mut Pending<'g, E> {
        let number = node.sequence_nr();
        let highest = self.highest.as_ref().map_or(0, |pending| pending.node.sequence_nr());
        if self.highest.is_some() && number < highest {
            return self.lower.entry(number).or_insert_with(|| Pending::new(node));
        }
        if let Some(before) = self.highest.take_if(|before| before.node.sequence_nr() != number) {
            self.lower.insert(highest, before);
        }
        self.highest.get_or_insert_with(|| Pending::new(node))
    }

    /// The next node.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Pending<'g, E>> {
        let next = self.highest.take()?;
        self.highest = self.lower.pop_last().map(|(_, pending)| pending);
        Some(next)
    }
}

impl<'g, E: Engine> Pending<'g, E> {
    fn new(node: &'g NodeRef<E>) -> Self {
        let grads = match node.inputs() {
            [_] => Gradients::from(None),
            inputs => inputs.iter().map(|_| None).collect(),
        };
        Self { node, grads, sums: None }
    }

    /// Adds a gradient that has been admitted to an input; if that was `late`, it may still have to be rounded.
    pub(super) fn add(&mut self, input: usize, grad: DynTensor<E>, late: bool) -> Result<()> {
        let metadata = &self.node.inputs()[input];
        if late && let Some(dtype) = metadata.converts(grad.dtype()) {
            return self.sum(input).add_unrounded(grad, dtype);
        }
        if self.grads[input].is_none() && self.sums.as_ref().is_none_or(|sums| !sums.contains_key(&input)) {
            self.grads[input] = Some(grad);
            return Ok(());
        }
        let grad_dtype = metadata.contract().grad_dtype;
        self.sum(input).add(grad, grad_dtype)
    }

    /// The sum at an input, begun with what has arrived there.
    fn sum(&mut self, input: usize) -> &mut Sum<E> {
        let first = self.grads[input].take();
        self.sums.get_or_insert_default().entry(input).or_insert_with(|| Sum::Single(first))
    }
}
