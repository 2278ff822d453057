//! Running a Function, and recording it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use smallvec::SmallVec;

use super::context::{Context, Saved};
use super::recorded::Recorded;
use super::{Function, Inputs};
use crate::autograd::Edge;
use crate::autograd::grad_mode::{self, GradMode, GradModeGuard};
use crate::autograd::graph_task::panicked;
use crate::autograd::{Cut, DynTensor, InputMetadata, Node, Origin, Outputs, SavedTensor};
use crate::contract::GradContract;
use crate::engine::Engine;
use crate::error::{Phase, Result};

/// Runs `function` on `inputs` and records one node, if one of them is tracked and recording is on.
///
/// # Errors
/// What forward reports, with the Function's name; a panic in it; and every mistake in what it declared, whether or
/// not anything is recorded. Nothing is recorded then, and the inputs are as before.
pub fn apply<E: Engine, F: Function<E>>(function: F, inputs: &[&DynTensor<E>]) -> Result<Outputs<E>> {
    let inputs: SmallVec<[_; 4]> = inputs.iter().map(|&input| Some(input)).collect();
    apply_optional(function, &inputs)
}

/// [`apply`], where inputs may be absent (`None`).
///
/// # Errors
/// As [`apply`].
pub fn apply_optional<E: Engine, F: Function<E>>(
    function: F,
    inputs: &[Option<&DynTensor<E>>],
) -> Result<Outputs<E>> {
    let name = function.name();
    let recording = grad_mode::is_enabled();
    let needs = inputs.iter().map(|input| recording && input.is_some_and(DynTensor::requires_grad)).collect();
    let mut ctx = Context::new(name, needs);
    let outputs = run_forward(&function, &mut ctx, inputs)?;
    let contracts = ctx.declarations.resolve(name, &outputs, inputs)?;
    if ctx.needs_input_grad.contains(&true) {
        record(function, ctx, inputs, outputs, &contracts)
    } else {
        Ok(unrecorded(inputs, outputs))
    }
}

fn run_forward<E: Engine, F: Function<E>>(
    function: &F,
    ctx: &mut Context<E>,
    inputs: &[Option<&DynTensor<E>>],
) -> Result<Outputs<E>> {
    let name = function.name();
    let tracked = inputs.iter().flatten().any(|input| input.requires_grad());
    let _mode = GradModeGuard::enter(if tracked { GradMode::InForward } else { GradMode::Disabled });
    let mut run = || function.forward(ctx, &Inputs::new(name, inputs));
    if function.is_built_in() {
        return run();
    }
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| error.inside(name, Phase::Forward)),
        Err(payload) => Err(panicked(name, Phase::Forward, payload.as_ref())),
    }
}

/// Makes the node and gives the outputs edges to it.
fn record<E: Engine, F: Function<E>>(
    function: F,
    ctx: Context<E>,
    inputs: &[Option<&DynTensor<E>>],
    outputs: Outputs<E>,
    contracts: &[Option<GradContract>],
) -> Result<Outputs<E>> {
    let name = ctx.function;
    let differentiable = |position: usize| contracts[position].is_some();
    let saved = match ctx.saved {
        Saved::Kept(tensors) => {
            Some(tensors.into_iter().map(|t| SavedTensor::new(t, &outputs, differentiable)).collect())
        }
        Saved::Freed => None,
    };
    let step = Recorded {
        function,
        saved: Mutex::new(saved),
        stored: ctx.stored,
        materialize_grads: ctx.materialize_grads,
    };
    let next_edges = inputs.iter().map(|input| input.map_or(Origin::Absent, |input| input.origin().clone()));
    let metadata = outputs.iter().zip(contracts).map(|(output, contract)| {
        let (shape, dtype) = (output.shape().clone(), output.dtype());
        // No edge leads to a non-differentiable output, so its contract is never asked; its zeros have its dtype.
        InputMetadata::new(shape, dtype, contract.unwrap_or(GradContract::default_of(dtype)))
    });
    let node = Node::record(step, next_edges.collect(), metadata.collect())?;
    let with_origin = |(position, (output, contract)): (usize, (DynTensor<E>, &Option<GradContract>))| {
        let origin = match contract {
            Some(_) => Origin::Edge(Edge::new(node.clone(), position as u32)),
            None => Origin::Cut(Cut::Function { function: name, position }),
        };
        DynTensor::with_origin(output.into_array(), origin)
    };
    Ok(outputs.into_iter().zip(contracts).enumerate().map(with_origin).collect())
}

/// Gives outputs that are not recorded the reason why.
fn unrecorded<E: Engine>(inputs: &[Option<&DynTensor<E>>], outputs: Outputs<E>) -> Outputs<E> {
    let origin = || Origin::of_unrecorded(inputs.iter().copied().flatten());
    outputs.into_iter().map(|output| DynTensor::with_origin(output.into_array(), origin())).collect()
}
