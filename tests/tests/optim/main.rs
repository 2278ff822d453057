//! Optimizers, loss scaling, clipping and their files: what a training loop may rely on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod clip;
mod damage;
mod files;
mod formulas;
mod leaves;
mod master;
mod mistakes;
mod scaler;
mod support;
mod values;
