//! Functions: what the user writes, and how a call of one becomes a node.
//!
//! This is the dynamic layer, which mirrors `torch.autograd.Function` call for call. The typed layer generates
//! implementations of [`Function`]; built-in operations are Functions too.

mod apply;
mod context;
mod graph;
pub mod host;
mod inputs;
mod recorded;

pub use apply::{GivenInputs, apply, apply_optional};
pub use context::{Context, Placeholder, SaveForBackward};
pub use graph::{Graph, Roots};
pub use inputs::Inputs;

use std::sync::Arc;

use crate::autograd::{Gradients, Outputs};
use crate::engine::{Cpu, Engine};
use crate::error::Result;

/// A pair of forward and backward, with the dtypes of tensors known at run time.
///
/// `#[autograd_function]` writes this from an [`Op`](crate::Op); by hand it is written where the number or the dtypes of
/// tensors are not known before the program runs. Non-tensor arguments are fields of `Self`.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
///
/// /// Rounds to f16 and takes its gradient in f32.
/// struct Half;
///
/// impl Function for Half {
///     fn name(&self) -> &'static str {
///         "Half"
///     }
///
///     fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
///         ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
///         Ok(inputs.get(0)?.cast(DType::F16)?.into())
///     }
///
///     fn backward(&self, _: &Context, grads: Gradients) -> Result<Gradients> {
///         assert_eq!(grads[0].as_ref().map(|grad| grad.dtype()), Some(DType::F32));
///         Ok(grads)
///     }
/// }
///
/// let x = DynTensor::from_vec(vec![1.0_f32], [1])?.requiring_grad()?;
/// let y = &apply(Half, &[&x])?[0];
/// y.backward_with(&DynTensor::from_vec(vec![1e-10_f32], [1])?, BackwardOptions::new())?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1e-10]);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Function",
    label = "`Function` is not implemented for `{Self}`",
    note = "a struct with `#[autograd_function(…)]` and `impl Op` is a Function; so is one with `impl Function` by hand"
)]
pub trait Function<E: Engine = Cpu>: Send + Sync + 'static {
    /// The name that errors, reports and nodes show.
    fn name(&self) -> &'static str;

    /// Maps inputs to outputs. Nothing in it is recorded: the Function is, as a whole.
    ///
    /// Here, and only here, the context takes declarations and saved tensors.
    ///
    /// # Errors
    /// Whatever it reports; [`apply`] passes it on with the Function's name.
    fn forward(&self, ctx: &mut Context<E>, inputs: &Inputs<'_, E>) -> Result<Outputs<E>>;

    /// Maps gradients of the outputs, one for each, to gradients of the inputs, one for each.
    ///
    /// Each gradient has the dtype declared for its output; unused outputs have zeros in that dtype, or `None` after
    /// `set_materialize_grads(false)`. `None` is returned for an input that has no gradient.
    ///
    /// # Errors
    /// Whatever it reports; the backward call passes it on with the Function's name.
    fn backward(&self, ctx: &Context<E>, grads: Gradients<E>) -> Result<Gradients<E>>;

    /// Whether this is part of the crate: its errors need no wrapping, and it does not panic.
    #[doc(hidden)]
    fn is_built_in(&self) -> bool {
        false
    }
}

/// A shared Function, to be applied more than once.
impl<E: Engine, F: Function<E>> Function<E> for Arc<F> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn forward(&self, ctx: &mut Context<E>, inputs: &Inputs<'_, E>) -> Result<Outputs<E>> {
        (**self).forward(ctx, inputs)
    }

    fn backward(&self, ctx: &Context<E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        (**self).backward(ctx, grads)
    }

    fn is_built_in(&self) -> bool {
        (**self).is_built_in()
    }
}
