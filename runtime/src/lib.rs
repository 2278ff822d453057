//! gradpact
pub mod dtype;
pub mod engine;
pub mod error;
pub mod shape;
#[cfg(feature = "cpu")]
pub mod cpu;
