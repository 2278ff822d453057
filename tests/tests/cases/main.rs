//! What people who mix precisions have really hit, as tests: one for each case, named after it.
//!
//! The cases were distilled from public reports about PyTorch, JAX, TensorFlow, Paddle, candle, burn and others; their
//! numbers come from exact arithmetic. A test rules out the kind of fault, not only the numbers of the report.
//!
//! Mistakes that do not compile are in `ui`: `signatures/dtypes_clash_in_the_body` (O-06, second half; O-07),
//! `signatures/backward_returns_another_dtype` (O-18, O-19), `signatures/forward_returns_the_gradient_dtype` (O-24),
//! `signatures/no_backward` (O-43), `chaining/too_many_inputs` (O-49), `signatures/gradient_of_an_integer_output` (O-52).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accumulation;
mod audit;
mod conversion;
mod declaration;
mod graph;
mod inside_backward;
mod integers;
mod narrowing;
mod positions;
mod returned;
mod second_order;
mod seeds;
mod support;
mod surrogate;
