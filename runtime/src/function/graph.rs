//! Whose graph records the Functions of an engine.

use super::{Function, GivenInputs, apply};
use crate::autograd::{self, BackwardOptions, DynTensor, Outputs};
use crate::contract::{GradContract, GradDType};
use crate::dtype::DType;
use crate::engine::{Cpu, Engine};
use crate::error::Result;

/// Tensors to differentiate, each with its seed.
pub type Roots<'a, E> = [(&'a DynTensor<E>, Option<&'a DynTensor<E>>)];

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

    /// What [`Tensor::backward`](crate::Tensor::backward()) and its like do.
    ///
    /// # Errors
    /// As [`backward`](autograd::backward()).
    fn run_backward(roots: &Roots<'_, Self>, options: BackwardOptions) -> Result<()> {
        autograd::backward(roots, options)
    }

    /// What [`Tensor::requires_grad`](crate::Tensor::requires_grad) says.
    fn is_tracked(tensor: &DynTensor<Self>) -> bool {
        tensor.requires_grad()
    }

    /// What holds for the gradient of a tensor that is tracked; `None` of one that is not.
    fn tracked_contract(tensor: &DynTensor<Self>) -> Option<GradContract> {
        tensor.origin().edge().and_then(|_| tensor.grad_contract())
    }

    /// What [`Tensor::requiring_grad_in`](crate::Tensor::requiring_grad_in) makes; `None` is for the values' own dtype.
    ///
    /// # Errors
    /// As there.
    fn leaf(tensor: &DynTensor<Self>, grad_dtype: Option<GradDType>) -> Result<DynTensor<Self>> {
        match grad_dtype {
            Some(grad_dtype) => tensor.requiring_grad_in(grad_dtype),
            None => tensor.requiring_grad(),
        }
    }

    /// The gradient that a leaf has accumulated.
    fn accumulated(tensor: &DynTensor<Self>) -> Option<DynTensor<Self>> {
        tensor.grad()
    }

    /// Puts a gradient in the place of what a leaf has accumulated.
    ///
    /// # Errors
    /// As [`DynTensor::set_grad`].
    fn assign_grad(tensor: &DynTensor<Self>, grad: Option<&DynTensor<Self>>) -> Result<()> {
        tensor.set_grad(grad)
    }

    /// Forgets what a leaf has accumulated.
    fn forget_grad(tensor: &DynTensor<Self>) {
        tensor.zero_grad();
    }

    /// What [`Tensor::detach`](crate::Tensor::detach) gives.
    fn constant(tensor: &DynTensor<Self>) -> DynTensor<Self> {
        tensor.detach()
    }

    /// What [`Tensor::cast`](crate::Tensor::cast) gives: its gradient arrives in the wider of `dtype` and the tensor's gradient
    /// dtype, and is passed on.
    ///
    /// # Errors
    /// As there.
    fn converted(tensor: &DynTensor<Self>, dtype: DType) -> Result<DynTensor<Self>> {
        tensor.cast(dtype)
    }

    /// The same tensor, whose gradient is converted to another dtype first, then passed on. An untracked one stays as it is.
    ///
    /// # Errors
    /// As [`Tensor::narrow_grad`](crate::Tensor::narrow_grad).
    fn redeclared(
        tensor: &DynTensor<Self>,
        name: &'static str,
        grad_dtype: GradDType,
    ) -> Result<DynTensor<Self>> {
        tensor.redeclared(name, grad_dtype)
    }
}

impl Graph for Cpu {}
