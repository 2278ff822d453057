//! What the tests share: a second, tiny engine that has nothing in common with the embedded one; random programs to run
//! on both, and a reference that says by plain recursion what their gradients are; what is generic over the engine, for hosts to run
//! too; small helpers.

pub mod compiler;
pub mod conformance;
pub mod format;
pub mod generic;
pub mod lab;
pub mod listing;
pub mod log;
pub mod plan;
pub mod program;
pub mod reference;
pub mod toy;
