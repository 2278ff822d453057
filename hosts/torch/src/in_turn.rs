//! Dropping what nodes keep, without recursion as deep as the graph.
//!
//! libtorch drops a chain of nodes in a loop. But a tensor that a Function has stored, or holds in a field, may be the last that
//! leads to another node: that one's state is then dropped inside this drop, and so on. gradpact's own graph knows how to
//! take turns.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gradpact::host::drop_in_turn;

use crate::node::Recorded;

/// Drops the state of a node. Panics of what the user's struct does when it is dropped end here.
pub(crate) fn drop_state(state: Box<Recorded>) {
    drop_in_turn(Quiet(Some(state)));
}

/// A state whose turn may come inside the drop of another: its panics are not that one's.
struct Quiet(Option<Box<Recorded>>);

impl Drop for Quiet {
    fn drop(&mut self) {
        quietly(|| drop(self.0.take()));
    }
}

/// Runs `body`, which must not unwind into C++.
pub(crate) fn quietly(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        // Dropping it could panic again.
        core::mem::forget(panic);
    }
}
