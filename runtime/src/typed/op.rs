//! What a user writes: the formulas of a Function whose contract the attribute declares.

use super::forward_only::AllowsOp;
use super::tensors::{OutputTensors, Tensors};
use crate::autograd::Outputs;
use crate::engine::{Cpu, Engine};
use crate::error::Result;
use crate::function::{Context, GivenInputs, Graph};

/// The gradient contract of a Function: how many outputs, in which dtypes they are stored, and in which their
/// gradients arrive. Written by `#[autograd_function]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no gradient contract",
    label = "no `#[autograd_function(…)]` on this type",
    note = "add `#[autograd_function(out = …, grad = …)]` to the struct"
)]
pub trait Contract {
    /// The outputs on engine `E`.
    type Outputs<E: Engine>: OutputTensors<E>;

    /// The outputs as backward sees them: the same, or with an `Option` around each that has a gradient, where
    /// `materialize = false` lets one be missing.
    type Received<E: Engine>;

    /// Whether there is a backward: [`Written`](super::Written), or [`NoBackward`](super::NoBackward).
    type Backward;

    /// Applies the generated Function. Here, so that [`apply`](super::Apply::apply) asks for an [`Op`] and nothing else: a
    /// struct without formulas then gives one error.
    #[doc(hidden)]
    fn record<E: Graph>(self, inputs: &GivenInputs<'_, E>) -> Result<Outputs<E>>
    where
        Self: Op<E>;
}

/// The formulas of a Function.
///
/// `forward` maps values to values, `backward` gradients to gradients, and [`apply`](super::Apply::apply) tensors to
/// tensors. For an output `Tensor<f16, f32>` forward returns a `Value<f16>` and backward receives a `Value<f32>`; for an
/// input `Tensor<f16, f32>` forward receives a `Value<f16>` and backward returns a `Value<f32>`. Several inputs or outputs
/// are tuples. What is not a tensor is a field of the struct, owned and `Send + Sync`, since the graph keeps the struct. A
/// Function without a derivative implements [`ForwardOnly`](super::ForwardOnly) instead.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
///
/// /// `a · b`, stored in half precision; its backward receives single precision.
/// #[autograd_function(out = f16, grad = f32)]
/// struct Product;
///
/// impl Op for Product {
///     type Inputs = (Tensor<f32>, Tensor<f32>);
///
///     fn forward(&self, ctx: &mut Context, (a, b): (Value<f32>, Value<f32>)) -> Result<Value<f16>> {
///         ctx.save_for_backward((&a, &b));
///         a.mul(&b)?.cast()
///     }
///
///     fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Value<f32>)> {
///         let (a, b): (Value<f32>, Value<f32>) = ctx.saved()?;
///         Ok((grad.mul(&b)?, grad.mul(&a)?))
///     }
/// }
///
/// let a = Tensor::<f32>::from_vec(vec![2.0, 3.0], [2])?.requiring_grad()?;
/// let b = Tensor::<f32>::from_vec(vec![5.0, 7.0], [2])?.requiring_grad()?;
/// let y: Tensor<f16, f32> = Product.apply((&a, &b))?;
/// y.cast::<f32>()?.sum()?.backward()?;
/// assert_eq!(a.grad().unwrap().to_vec()?, [5.0, 7.0]);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has a contract but no formulas",
    label = "`Op` is not implemented for `{Self}`",
    note = "write `impl Op for {Self}` with `type Inputs`, `forward` and `backward`",
    note = "or, if its attribute says `backward = none`, `impl ForwardOnly for {Self}` with the first two"
)]
pub trait Op<E: Engine = Cpu>:
    Contract<Backward: AllowsOp<Self, E>, Received<E>: Tensors<E>> + Sized + Send + Sync + 'static
{
    /// The tensors it takes: a [`Tensor`](super::Tensor), an `Option` of one, or a tuple of up to eight of these.
    type Inputs: Tensors<E>;

    /// Computes the outputs. Nothing in it is recorded: the Function is, as a whole.
    ///
    /// # Errors
    /// Whatever it reports; `apply` passes it on with the Function's name.
    fn forward(
        &self,
        ctx: &mut Context<E>,
        inputs: <Self::Inputs as Tensors<E>>::Values,
    ) -> Result<<Self::Outputs<E> as Tensors<E>>::Values>;

    /// Computes the gradients of the inputs from those of the outputs, which have the declared dtypes. For an output that
    /// nobody used zeros arrive, or with `materialize = false` nothing: every gradient is then an `Option`.
    ///
    /// # Errors
    /// Whatever it reports; the backward call passes it on with the Function's name.
    fn backward(
        &self,
        ctx: &Context<E>,
        grads: <Self::Received<E> as Tensors<E>>::Grads,
    ) -> Result<<Self::Inputs as Tensors<E>>::Grads>;
}
