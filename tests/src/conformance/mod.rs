//! What PyTorch was measured to do, and how an engine is held against it: the cases, what is run for each on whatever engine
//! ([`Subject`]), and what came of it.
//!
//! `tests/conformance` replays them on the embedded engine, a host replays them on its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test fails by panicking"
)]

pub mod left_out;
pub mod messages;
pub mod num;
pub mod outcome;
pub mod probe;
pub mod row;
pub mod rules;
pub mod runs;
pub mod step;
mod subject;

pub use subject::{Dyn, Embedded, Of, Subject};

/// A line for each measured case.
pub const MEASURED: &str = include_str!("../../tests/conformance/torch-2.14.1.jsonl");

/// Cases that the notes on the measurements tell, and the file does not have.
pub const TOLD: &str = include_str!("../../tests/conformance/told.jsonl");
