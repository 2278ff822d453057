//! `gradpact::testing`: that right formulas pass in every dtype, wrong ones and broken contracts do not, and that reports say
//! what a test author needs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accuracy;
mod behaviour;
mod built_in;
mod contract;
mod formulas;
mod functions;
mod options;
mod second;
mod support;
