//! Functions that have no derivative, and what keeps their formulas apart from those that have one.

use super::op::Contract;
use super::tensors::Tensors;
use crate::engine::{Cpu, Engine};
use crate::error::{Error, Result};

/// The formula of a Function that has no derivative: `#[autograd_function(…, backward = none)]`.
///
/// Its outputs are not differentiable, which their types say: `Tensor<f16, NoGrad>`, or for integers `Tensor<i64>`. There is no
/// context to declare or save anything in, since no backward will read it. The attribute makes an
/// [`Op`](super::Op) of it, which is applied like any other.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
///
/// /// The bin of this width in which each value lies; values are not negative.
/// #[autograd_function(out = i64, backward = none)]
/// struct Bin {
///     width: f64,
/// }
///
/// impl ForwardOnly for Bin {
///     type Inputs = Tensor<f32>;
///
///     fn forward(&self, x: Value<f32>) -> Result<Value<i64>> {
///         x.mul_scalar(1.0 / self.width)?.cast()
///     }
/// }
///
/// let x = Tensor::<f32>::from_vec(vec![0.2, 1.7], [2])?.requiring_grad()?;
/// let bins: Tensor<i64> = Bin { width: 0.5 }.apply(&x)?;
/// assert_eq!(bins.to_vec()?, [0, 3]);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has a contract but no formula",
    label = "`ForwardOnly` is not implemented for `{Self}`",
    note = "write `impl ForwardOnly for {Self}` with `type Inputs` and `forward`, as `backward = none` in its attribute says"
)]
pub trait ForwardOnly<E: Engine = Cpu>:
    Contract<Backward: AllowsForwardOnly<Self, E>, Received<E>: Tensors<E>> + Sized + Send + Sync + 'static
{
    /// The tensors it takes: a [`Tensor`](super::Tensor), an `Option` of one, or a tuple of up to eight of these.
    type Inputs: Tensors<E>;

    /// Computes the outputs.
    ///
    /// # Errors
    /// Whatever it reports; `apply` passes it on with the Function's name.
    fn forward(
        &self,
        inputs: <Self::Inputs as Tensors<E>>::Values,
    ) -> Result<<Self::Outputs<E> as Tensors<E>>::Values>;
}

/// The Function's backward is written in its [`Op`](super::Op).
#[derive(Clone, Copy, Debug)]
pub enum Written {}

/// The Function has no backward: `backward = none`. Its formula is written in [`ForwardOnly`].
#[derive(Clone, Copy, Debug)]
pub enum NoBackward {}

/// Whether `F` may be an [`Op`](super::Op), by what its attribute says of backward. Not for users.
#[diagnostic::on_unimplemented(
    message = "`{F}` cannot be an `Op`: its attribute says `backward = none`",
    label = "write `impl ForwardOnly for {F}` instead",
    note = "`ForwardOnly` has `type Inputs` and `fn forward(&self, inputs)`; or remove `backward = none`, to write a backward"
)]
pub trait AllowsOp<F, E: Engine> {}

#[diagnostic::do_not_recommend]
impl<F, E: Engine> AllowsOp<F, E> for Written {}

/// What the attribute makes of a [`ForwardOnly`] is an `Op`.
#[diagnostic::do_not_recommend]
impl<F: ForwardOnly<E>, E: Engine> AllowsOp<F, E> for NoBackward {}

/// Whether `F` may be [`ForwardOnly`], by what its attribute says of backward; then it may be the `Op` that the attribute makes
/// of it. Not for users.
#[diagnostic::on_unimplemented(
    message = "`{F}` cannot be `ForwardOnly`: its attribute does not say `backward = none`",
    label = "write `impl Op for {F}` instead, with a backward",
    note = "or, if it has no derivative, add `backward = none` to the attribute"
)]
pub trait AllowsForwardOnly<F, E: Engine>: AllowsOp<F, E> {}

#[diagnostic::do_not_recommend]
impl<F: ForwardOnly<E>, E: Engine> AllowsForwardOnly<F, E> for NoBackward {}

/// The backward of a generated `Op` that has none. The graph has no way to it; a call by hand ends here.
///
/// # Errors
/// [`Error::NoBackward`], always.
pub fn no_backward<T>(function: &str) -> Result<T> {
    Err(Error::NoBackward(function.to_owned()))
}
