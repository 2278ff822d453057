//! Whose graph records the Functions of an engine.

use super::{Function, GivenInputs, apply};
use crate::autograd::Outputs;
use crate::engine::{Cpu, Engine};
use crate::error::Result;

/// An engine on whose tensors Functions can be applied: it says in which graph a call becomes a node.
///
/// The default is the graph of this crate, which works with the arrays of any engine. The engine of a host, whose tensors
/// have a graph of their own, records there: see the module [`host`](super::host).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whose graph records its Functions",
    label = "not an engine that Functions can be applied on",
    note = "`impl gradpact::function::Graph for {Self} {{}}` chooses the graph of gradpact"
)]
pub trait Graph: Engine {
    /// Runs `function` on `inputs` and records one node, if one of them is tracked and recording is on.
    ///
    /// # Errors
    /// As [`apply`](super::apply()).
    fn record_function<F: Function<Self>>(
        function: F,
        inputs: &GivenInputs<'_, Self>,
    ) -> Result<Outputs<Self>> {
        apply::embedded(function, inputs)
    }
}

impl Graph for Cpu {}
