//! The nodes that gradients wait at in one backward call, highest sequence number first.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::input_buffer::Sum;
use super::node::NodeRef;
use crate::engine::Engine;

/// What has arrived at each input of a node, which has nearly always one.
pub(super) type Sums<E> = SmallVec<[Sum<E>; 1]>;

/// A node with the gradients that have arrived at it.
pub(super) struct Pending<'g, E: Engine> {
    pub(super) node: &'g NodeRef<E>,
    pub(super) sums: Sums<E>,
}

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
        let sums = match node.inputs() {
            [_] => SmallVec::from_buf([Sum::default()]),
            inputs => inputs.iter().map(|_| Sum::default()).collect(),
        };
        Self { node, sums }
    }
}
