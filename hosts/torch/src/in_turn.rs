//! Dropping what nodes keep, without recursion as deep as the graph.
//!
//! libtorch drops a chain of nodes in a loop. But a tensor that a Function has stored, or holds in a field, may be the last that
//! leads to another node: that one's state is then dropped inside this drop, and so on. At a depth of [`DEPTH_LIMIT`] a state is put
//! aside, and the outermost drop takes it up when it is done.

use core::cell::{Cell, RefCell};
use core::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::node::Recorded;

/// How many states may drop inside one another before the next ones wait for their turn.
const DEPTH_LIMIT: u32 = 32;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    // Without a destructor, and so still there when other thread-locals drop graphs while their thread ends.
    static WAITING: RefCell<ManuallyDrop<Vec<Recorded>>> = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Drops the state of a node. Panics of what the user's struct does when it is dropped end here.
pub(crate) fn drop_state(state: Box<Recorded>) {
    let depth = DEPTH.get();
    if depth >= DEPTH_LIMIT {
        WAITING.with_borrow_mut(|waiting| waiting.push(*state));
        return;
    }
    DEPTH.set(depth + 1);
    quietly(|| drop(state));
    if depth == 0 {
        while let Some(next) = next_waiting() {
            quietly(|| drop(next));
        }
    }
    DEPTH.set(depth);
}

/// The next state that was put aside; after the last one the list's memory is freed.
fn next_waiting() -> Option<Recorded> {
    WAITING.with_borrow_mut(|waiting| {
        let next = waiting.pop();
        if next.is_none() {
            **waiting = Vec::new();
        }
        next
    })
}

/// Runs `body`, which must not unwind into C++.
pub(crate) fn quietly(body: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        // Dropping it could panic again.
        core::mem::forget(panic);
    }
}
