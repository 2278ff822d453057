//! Running a Function, and recording it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::context::{Context, Needs};
use super::recorded::{Kept, Recorded};
use super::{Function, Graph, Inputs};
use crate::autograd::grad_mode::{self, GradMode, GradModeGuard};
use crate::autograd::graph_task::panicked;
use crate::autograd::{Cut, DynTensor, Edge, InputMetadata, Node, NodeRef, Origin, Outputs};
use crate::contract::GradContract;
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
    let forward = Forward::run(&function, inputs)?;
    if !forward.is_recorded() {
        return Ok(forward.unrecorded(inputs));
    }
    let origin =
        |_, input: &Option<&DynTensor<E>>| input.map_or(Origin::Absent, |input| input.origin().clone());
    let (next_edges, metadata) = (List::from_slice(inputs, origin), forward.metadata());
    let (kept, outputs) = forward.split()?;
    let node = Node::record(Recorded { function, kept }, next_edges, metadata)?;
    Ok(outputs.attach(&node))
}

/// What is left when a forward has run. Its methods do not depend on the Function's type, so that little is compiled anew
/// for each Function.
struct Forward<E: Engine> {
    ctx: Context<E>,
    outputs: Outputs<E>,
    contracts: Contracts,
}

/// The contract of each output; `None` where it has no gradient.
type Contracts = List<Option<GradContract>>;

impl<E: Engine> Forward<E> {
    fn run(function: &dyn Function<E>, inputs: &GivenInputs<'_, E>) -> Result<Self> {
        let name = function.name();
        let recording = grad_mode::is_enabled();
        let requires_grad = |position: usize| inputs[position].is_some_and(DynTensor::requires_grad);
        let needs = Needs::of(inputs.len(), |position| recording && requires_grad(position));
        let mut ctx = Context::new(name, needs);
        let outputs = run_forward(function, &mut ctx, inputs)?;
        let tracked = inputs.iter().flatten().filter_map(|input| input.origin().edge());
        let carried = tracked.map(|edge| edge.metadata().contract().grad_dtype);
        let contracts = ctx.declarations.resolve(name, &outputs, &carried)?;
        Ok(Self { ctx, outputs, contracts })
    }

    fn is_recorded(&self) -> bool {
        self.ctx.needs_input_grad.any()
    }

    /// The outputs, with the reason why they are not recorded.
    fn unrecorded(self, inputs: &GivenInputs<'_, E>) -> Outputs<E> {
        let origin = || Origin::of_unrecorded(inputs.iter().copied().flatten());
        self.outputs.map(|_, output| DynTensor::with_origin(output.into_array(), origin()))
    }

    fn metadata(&self) -> List<InputMetadata> {
        List::from_slice(&self.outputs, |position, output| {
            let (shape, dtype) = (output.shape().clone(), output.dtype());
            // No edge leads to a non-differentiable output, so its contract is never asked; its zeros have its dtype.
            let contract = self.contracts[position].unwrap_or(GradContract::default_of(dtype));
            InputMetadata::new(shape, dtype, contract)
        })
    }

    /// What the node keeps, and what it does not.
    fn split(self) -> Result<(Kept<E>, Unattached<E>)> {
        let Self { ctx, outputs, contracts } = self;
        let function = ctx.function;
        let kept = Kept::new(ctx, &outputs, &|position| contracts[position].is_some())?;
        Ok((kept, Unattached { function, outputs, contracts }))
    }
}

/// Outputs whose node is about to be made.
struct Unattached<E: Engine> {
    function: &'static str,
    outputs: Outputs<E>,
    contracts: Contracts,
}

impl<E: Engine> Unattached<E> {
    /// Gives the outputs edges to their node.
    fn attach(self, node: &NodeRef<E>) -> Outputs<E> {
        let Self { function, outputs, contracts } = self;
        outputs.map(|position, output| {
            let origin = match contracts[position] {
                Some(_) => Origin::Edge(Edge::new(NodeRef::clone(node), position as u32)),
                None => Origin::Cut(Cut::Function { function, position }),
            };
            DynTensor::with_origin(output.into_array(), origin)
        })
    }
}

/// Runs a forward; its errors and panics come with the Function's name.
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
    let mut run = || function.forward(ctx, &Inputs::new(name, inputs));
    if function.is_built_in() {
        return run();
    }
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.inside(name, Phase::Forward)),
        Err(payload) => Err(panicked(name, Phase::Forward, payload)),
    }
}
