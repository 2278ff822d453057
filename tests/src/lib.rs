//! What the tests share: a second, tiny engine that has nothing in common with the embedded one, and small helpers.

pub mod compiler;
pub mod toy;
