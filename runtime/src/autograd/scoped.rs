//! What holds on one thread while a region of code runs: set where it begins, as before where it ends, also by a panic.

use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use std::thread::LocalKey;

/// Restores the value that a cell of this thread had when this was made.
#[must_use = "the value is restored when this is dropped"]
pub(crate) struct Restore<T: Copy + 'static> {
    cell: &'static LocalKey<Cell<T>>,
    before: T,
    // The cell is its own thread's, so this stays there.
    _not_send: PhantomData<*const ()>,
}

impl<T: Copy> Restore<T> {
    /// Sets the cell until the result is dropped.
    #[inline]
    pub(super) fn after(cell: &'static LocalKey<Cell<T>>, value: T) -> Self {
        Self { cell, before: cell.replace(value), _not_send: PhantomData }
    }

    /// The value that will be restored.
    pub(super) fn before(&self) -> T {
        self.before
    }
}

impl<T: Copy> Drop for Restore<T> {
    #[inline]
    fn drop(&mut self) {
        self.cell.set(self.before);
    }
}

/// The items of the regions that this thread is in, innermost last.
pub(super) type Stack<T> = LocalKey<RefCell<Vec<T>>>;

/// How many there are: read for each node, so kept apart from the list.
pub(super) type Count = LocalKey<Cell<usize>>;

/// Takes the innermost item off again.
struct Region<T: 'static> {
    stack: &'static Stack<T>,
    count: &'static Count,
}

impl<T> Drop for Region<T> {
    fn drop(&mut self) {
        let item = self.stack.with_borrow_mut(Vec::pop);
        self.count.set(self.count.get() - 1);
        // It may own what is the user's, and that may look at anything when it is dropped.
        drop(item);
    }
}

/// Runs `body` with `item` innermost.
pub(super) fn within<T, R>(
    stack: &'static Stack<T>,
    count: &'static Count,
    item: T,
    body: impl FnOnce() -> R,
) -> R {
    stack.with_borrow_mut(|items| items.push(item));
    count.set(count.get() + 1);
    let _region = Region { stack, count };
    body()
}
