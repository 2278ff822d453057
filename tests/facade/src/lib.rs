//! Re-exports the runtime and its attribute, so that the crate beside it can do without a dependency on either.

pub use gradpact::{self, autograd_function, prelude};
