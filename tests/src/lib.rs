//! What the tests share: a second, tiny engine that has nothing in common with the embedded one.

pub mod toy;
