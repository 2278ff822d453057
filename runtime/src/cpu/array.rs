//! Arrays of the CPU engine.
