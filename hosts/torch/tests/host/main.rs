//! What a user of the host may rely on, against the real libtorch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_input;
mod context;
mod dtypes;
mod errors;
mod graph;
mod outputs;
mod support;
mod threads;
mod typed;
