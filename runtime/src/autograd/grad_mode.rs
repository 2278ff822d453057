//! Whether operations on this thread are recorded.

use core::cell::Cell;
use core::fmt;

use super::scoped::Restore;

/// What happens to an operation on tracked tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GradMode {
    /// It is recorded.
    Enabled,
    /// It is not: the user said so, or a backward runs without `create_graph`.
    Disabled,
    /// It is not: it is part of the forward of a Function with tracked inputs, which is recorded as a whole.
    InForward,
}

thread_local! {
    static MODE: Cell<GradMode> = const { Cell::new(GradMode::Enabled) };
}

pub(crate) fn current() -> GradMode {
    MODE.get()
}

/// Whether operations on tracked tensors are recorded on this thread now.
pub fn is_enabled() -> bool {
    current() == GradMode::Enabled
}

/// Restores the mode that was in force when it was made, also when a panic passes.
#[must_use = "the mode ends when the guard is dropped"]
pub struct GradModeGuard(Restore<GradMode>);

impl GradModeGuard {
    /// Stops recording. Inside a forward nothing is recorded anyway, and what is made there stays known as that.
    pub(crate) fn disable() -> Self {
        Self::enter(if current() == GradMode::InForward { GradMode::InForward } else { GradMode::Disabled })
    }

    #[inline]
    pub(crate) fn enter(mode: GradMode) -> Self {
        Self(Restore::after(&MODE, mode))
    }
}

impl fmt::Debug for GradModeGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GradModeGuard").field("before", &self.0.before()).finish_non_exhaustive()
    }
}

/// Runs `body` without recording: its results are untracked. Holds for this thread.
pub fn no_grad<R>(body: impl FnOnce() -> R) -> R {
    let _guard = GradModeGuard::disable();
    body()
}

/// Runs `body` with recording, also inside [`no_grad`]. Holds for this thread.
pub fn enable_grad<R>(body: impl FnOnce() -> R) -> R {
    let _guard = GradModeGuard::enter(GradMode::Enabled);
    body()
}
