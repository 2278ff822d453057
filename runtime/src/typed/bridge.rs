//! From the dynamic layer's lists to the typed layer's tuples: the bodies of what the attribute generates.

use super::op::Op;
use super::tensors::{OutputTensors, Tensors};
use crate::autograd::{Gradients, Outputs};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::function::{Context, Inputs};

/// The forward of a generated Function.
///
/// # Errors
/// A wrong number or dtype of inputs, and whatever the forward reports.
#[inline]
pub fn forward<O: Op<E>, E: Engine>(
    op: &O,
    ctx: &mut Context<E>,
    inputs: &Inputs<'_, E>,
) -> Result<Outputs<E>> {
    // Through `apply` of the typed layer it cannot be otherwise; the dynamic one takes any number.
    let (expected, got) = (<O::Inputs as Tensors<E>>::COUNT, inputs.len());
    if got > expected {
        let function = ctx.function().to_owned();
        return Err(Error::ValueCount { function, what: "inputs", expected, got });
    }
    let values = <O::Inputs as Tensors<E>>::values(inputs)?;
    ctx.lock_declarations();
    Ok(<O::Outputs<E> as OutputTensors<E>>::outputs(op.forward(ctx, values)?))
}

/// The backward of a generated Function.
///
/// # Errors
/// A gradient that is missing or of another dtype, and whatever the backward reports.
#[inline]
pub fn backward<O: Op<E>, E: Engine>(
    op: &O,
    ctx: &Context<E>,
    mut grads: Gradients<E>,
) -> Result<Gradients<E>> {
    let grads = <O::Received<E> as Tensors<E>>::grads(ctx.function(), &mut grads)?;
    Ok(<O::Inputs as Tensors<E>>::into_gradients(op.backward(ctx, grads)?))
}
