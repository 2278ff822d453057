//! What the tests share: a second, tiny engine that has nothing in common with the embedded one, exact rounding, and small
//! helpers.

pub mod compiler;
pub mod exact;
pub mod toy;
