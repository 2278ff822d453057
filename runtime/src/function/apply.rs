//! Running a Function, and recording it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::context::{Context, Positions};
use super::recorded::{Kept, Recorded};
use super::{Function, Graph, Inputs};
use crate::autograd::grad_mode::{self, GradMode, GradModeGuard};
use crate::autograd::graph_task::panicked;
use crate::autograd::{Cut, DynTensor, Edge, Node, NodeRef, Origin, Outputs};
use crate::contract::GradDType;
use crate::engine::Engine;
use crate::error::{Phase, Result};
use crate::list::List;
use crate::observe::{self, Scene};

/// Runs `function` on `inputs` and records one node, if one of them is tracked and recording is on.
///
/// # Errors
/// What forward reports, with the Function's name; a panic in it; and every mistake in what it declared, whether or
/// not anything is recorded. Nothing is recorded then, and the inputs are as before.
pub fn apply<E: Graph, F: Function<E>>(function: F, inputs: &[&DynTensor<E>]) -> Result<Outputs<E>> {
    E::record_function(function, &List::from_slice(inputs, |_, &input| Some(input)))
}

/// Inputs by position; `None` where an optional one is not given.
pub type GivenInputs<'a, E> = [Option<&'a DynTensor<E>>];

/// [`apply`], where inputs may be absent: an optional one that is not given has a position all the same.
///
/// # Errors
/// As [`apply`].
pub fn apply_optional<E: Graph, F: Function<E>>(
    function: F,
    inputs: &GivenInputs<'_, E>,
) -> Result<Outputs<E>> {
    E::record_function(function, inputs)
}

/// Runs `function` and records it in the graph of this crate.
pub(super) fn embedded<E: Engine, F: Function<E>>(
    function: F,
    inputs: &GivenInputs<'_, E>,
) -> Result<Outputs<E>> {
    let name = function.name();
    let mut ctx = context(name, inputs);
    let mut outputs = run_forward(&function, &mut ctx, inputs)?;
    // Mistakes are reported whether or not anything is recorded.
    let (metadata, differentiable) = ctx.declarations.resolve(name, &outputs, &grad_dtypes(inputs))?;
    if ctx.needs_input_grad.is_empty() {
        outputs
            .iter_mut()
            .for_each(|output| output.set_origin(Origin::of_unrecorded(inputs.iter().copied().flatten())));
        return Ok(outputs);
    }
    let kept = Kept::new(&mut ctx, &outputs, &differentiable)?;
    let node = Node::record(Recorded { function, kept }, next_edges(inputs), metadata)?;
    attach(&mut outputs, node, &differentiable);
    Ok(outputs)
}

// What follows does not depend on the Function's type, so that little is compiled anew for each.

/// The context of a forward.
fn context<E: Engine>(function: &'static str, inputs: &GivenInputs<'_, E>) -> Context<E> {
    let recording = grad_mode::is_enabled();
    let requires_grad = |position: usize| inputs[position].is_some_and(DynTensor::requires_grad);
    Context::new(function, Positions::among(inputs.len(), |position| recording && requires_grad(position)))
}

/// The gradient dtypes of the inputs that are tracked.
fn grad_dtypes<E: Engine>(inputs: &GivenInputs<'_, E>) -> impl Iterator<Item = GradDType> + Clone {
    let tracked = inputs.iter().flatten().filter_map(|input| input.origin().edge());
    tracked.map(|edge| edge.metadata().contract().grad_dtype)
}

/// Where the gradients of the inputs go.
fn next_edges<E: Engine>(inputs: &GivenInputs<'_, E>) -> List<Origin<E>> {
    List::from_slice(inputs, |_, input| input.map_or(Origin::Absent, |input| input.origin().clone()))
}

/// Gives the outputs edges to their node.
fn attach<E: Engine>(outputs: &mut [DynTensor<E>], node: NodeRef<E>, differentiable: &Positions) {
    let origin = |position: usize, node: NodeRef<E>| match differentiable.contains(position) {
        true => Origin::Edge(Edge::new(node, position as u32)),
        false => Origin::Cut(Cut::at_output(node.name(), position)),
    };
    if let [output] = outputs {
        // A reference less to count up and down again.
        return output.set_origin(origin(0, node));
    }
    for (position, output) in outputs.iter_mut().enumerate() {
        output.set_origin(origin(position, NodeRef::clone(&node)));
    }
}

/// Runs a forward; of user code errors and panics say where they come from.
pub(super) fn run_forward<E: Engine>(
    function: &dyn Function<E>,
    ctx: &mut Context<E>,
    inputs: &GivenInputs<'_, E>,
) -> Result<Outputs<E>> {
    let name = function.name();
    let tracked = inputs.iter().flatten().any(|input| input.requires_grad());
    let _mode = GradModeGuard::enter(if tracked { GradMode::InForward } else { GradMode::Disabled });
    let _scene = observe::enter(|| {
        let (function, is_built_in) = (name.to_owned(), function.is_built_in());
        Scene::Function { function, is_built_in, phase: Phase::Forward, backward: None }
    });
    let inputs = Inputs::new(name, inputs);
    if function.is_built_in() {
        return function.forward(ctx, &inputs);
    }
    let mut outputs = Outputs::new();
    let run = || function.forward(ctx, &inputs).map(|returned| outputs = returned);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Ok(outputs),
        Ok(Err(error)) => Err(error.inside(name, Phase::Forward)),
        Err(payload) => Err(panicked(name, Phase::Forward, payload)),
    }
}
