//! The two operations that the engine itself needs, conversion and addition. Their backward passes the gradient on.

use smallvec::SmallVec;

use super::edge::Cut;
use super::edge::{Edge, Origin};
use super::grad_mode::{self, GradMode};
use super::metadata::InputMetadata;
use super::node::{BackwardCall, BackwardStep, Node, NodeRef};
use super::tensor::{DynTensor, Gradients};
use crate::contract::{GradContract, GradDType};
use crate::dtype::{Census, DType};
use crate::engine::{Array, Engine};
use crate::error::{Error, Result};
use crate::list::List;
use crate::observe;

/// A step that gives each input the gradient of the output as it came: admission does the converting.
struct PassThrough {
    name: &'static str,
}

impl<E: Engine> BackwardStep<E> for PassThrough {
    fn name(&self) -> &'static str {
        self.name
    }

    fn backward(&self, call: &BackwardCall<'_, E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        let grad = grads.into_iter().next().flatten();
        Ok(call.node.next_edges().iter().map(|_| grad.clone()).collect())
    }

    fn materializes_grads(&self) -> bool {
        false
    }

    fn is_user_code(&self) -> bool {
        false
    }
}

/// Records `array` as the result of a [`PassThrough`] of `inputs`, with the gradient dtype that they carry.
fn record<E: Engine>(name: &'static str, array: E::Array, inputs: &[&DynTensor<E>]) -> Result<DynTensor<E>> {
    let dtype = array.dtype();
    record_as(name, array, inputs, |grad_dtypes| GradContract::carried(dtype, grad_dtypes.iter().copied()))
}

/// Records `array` as the result of a [`PassThrough`] of `inputs`, if recording is on and one of them is tracked.
fn record_as<E: Engine>(
    name: &'static str,
    array: E::Array,
    inputs: &[&DynTensor<E>],
    contract: impl FnOnce(&[GradDType]) -> Option<GradContract>,
) -> Result<DynTensor<E>> {
    if !grad_mode::is_enabled() || !inputs.iter().any(|input| input.requires_grad()) {
        return Ok(DynTensor::with_origin(array, Origin::of_unrecorded(inputs.iter().copied())));
    }
    let tracked = inputs.iter().filter_map(|input| input.origin().edge());
    let grad_dtypes: SmallVec<[_; 2]> = tracked.map(|edge| edge.metadata().contract().grad_dtype).collect();
    let Some(contract) = contract(&grad_dtypes) else {
        return Ok(DynTensor::with_origin(array, Origin::Cut(Cut::at_output(name, 0))));
    };
    let metadata = InputMetadata::new(array.shape().clone(), array.dtype(), contract);
    let next_edges = inputs.iter().map(|input| input.origin().clone()).collect();
    let node = Node::record(PassThrough { name }, next_edges, metadata.alone())?;
    Ok(DynTensor::with_origin(array, Origin::Edge(Edge::new(node, 0))))
}

/// `lhs + rhs` in the dtype of `lhs`, in place if nobody else holds it.
pub(super) fn add<E: Engine>(lhs: DynTensor<E>, rhs: &DynTensor<E>) -> Result<DynTensor<E>> {
    if !lhs.requires_grad() && !rhs.requires_grad() {
        // Kept, so that whoever differentiates a gradient that was not recorded is told why it has no graph.
        let origin = Origin::of_unrecorded([&lhs, rhs].into_iter());
        return Ok(DynTensor::with_origin(lhs.into_array().accumulate(rhs.array())?, origin));
    }
    let sum = lhs.array().clone().accumulate(rhs.array())?;
    record("Accumulate", sum, &[&lhs, rhs])
}

/// `lhs + rhs` in the dtype of `lhs`, `rhs` being rounded to `rounded` first; of tensors that are not tracked.
pub(super) fn add_rounded<E: Engine>(
    lhs: DynTensor<E>,
    rhs: &DynTensor<E>,
    rounded: DType,
) -> Result<DynTensor<E>> {
    let origin = Origin::of_unrecorded([&lhs, rhs].into_iter());
    Ok(DynTensor::with_origin(lhs.into_array().accumulate_rounded(rhs.array(), rounded)?, origin))
}

/// The sum of gradients that are not tracked, each rounded to `rounded` first, in `dtype`. See NOTE [Late rounding].
pub(super) fn sum_rounded<E: Engine>(
    grads: &[DynTensor<E>],
    rounded: DType,
    dtype: DType,
) -> Result<DynTensor<E>> {
    let arrays: SmallVec<[_; 4]> = grads.iter().map(DynTensor::array).collect();
    let sum = E::Array::sum_rounded(&arrays, rounded, dtype)?;
    Ok(DynTensor::with_origin(sum, Origin::of_unrecorded(grads.iter())))
}

impl<E: Engine> DynTensor<E> {
    /// The same values in `dtype`, rounded once to nearest even; in its own dtype a clone.
    ///
    /// # Dtypes
    /// The gradient arrives in the wider of `dtype` and this tensor's gradient dtype, so a conversion to a wider
    /// dtype and back does not round it. A conversion to an integer has no gradient.
    ///
    /// The tensors of a host, which have no place in this crate's graph, are converted by the host, and recorded in its graph.
    ///
    /// # Gradient
    /// Passed on: `dx = G`, which the edge to `x` converts to the gradient dtype of `x`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `_to_copy`; there the backward converts to the *storage* dtype of `x`.
    ///
    /// # Errors
    /// If the engine cannot hold the result.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        if !observe::is_active() {
            return self.converted(self.array().cast(dtype)?);
        }
        let (array, census) = self.array().cast_counting(dtype)?;
        observe::converted(self.dtype(), dtype, census);
        self.converted(array)
    }

    /// [`cast`](Self::cast), told of by its caller; in its own dtype what the values are.
    pub(super) fn cast_counting(&self, dtype: DType) -> Result<(Self, Option<Census>)> {
        let (array, census) = self.array().cast_counting(dtype)?;
        let converted = if dtype == self.dtype() { self.clone() } else { self.converted(array)? };
        Ok((converted, census))
    }

    /// `array`, which has these values in another dtype, with the conversion recorded.
    fn converted(&self, array: E::Array) -> Result<Self> {
        let in_forward = grad_mode::current() == GradMode::InForward;
        if !array.dtype().is_float() && self.requires_grad() && !in_forward {
            // Truncation is flat almost everywhere; a straight-through gradient must be declared by a Function. Inside the
            // forward of one this may be the output that it declares.
            return Ok(Self::with_origin(array, Origin::Cut(Cut::at_output("Cast", 0))));
        }
        record("Cast", array, &[self])
    }
}

impl<E: Engine> DynTensor<E> {
    /// The same tensor with another gradient dtype: its gradient is converted to that one first, then passed on.
    ///
    /// An untracked tensor is returned as it is.
    ///
    /// # Errors
    /// [`Error::DType`] if the gradient dtype is not floating-point.
    pub fn with_grad_dtype(&self, grad_dtype: GradDType) -> Result<Self> {
        self.redeclared("WithGradDType", grad_dtype)
    }

    /// This tensor, with a gradient dtype at least as wide as `promised`, a result that an operation has just made.
    pub(crate) fn promising(self, promised: GradDType) -> Result<Self> {
        let Some(edge) = self.origin().edge() else { return Ok(self) };
        let contract = edge.metadata().contract();
        let wanted = contract.grad_dtype.widest(promised);
        if wanted == contract.grad_dtype {
            return Ok(self);
        }
        if NodeRef::strong_count(edge.node()) > 1 {
            // Not made just now: the operation had nothing to do and returned what it was given.
            let contract = GradContract { grad_dtype: wanted, ..contract };
            return record_as("WidenGrad", self.array().clone(), &[&self], |_| Some(contract));
        }
        edge.metadata().set_contract(GradContract { grad_dtype: wanted, ..contract });
        Ok(self)
    }

    /// [`with_grad_dtype`](Self::with_grad_dtype) under the name of the method that was called.
    pub(crate) fn redeclared(&self, name: &'static str, grad_dtype: GradDType) -> Result<Self> {
        Self::refuse_foreign("with_grad_dtype")?;
        grad_dtype.require_float("with_grad_dtype")?;
        let contract = GradContract::declared(grad_dtype);
        let array = self.array().clone();
        record_as(name, array, &[self], |_| Some(contract))
    }
}

/// A step that gradients must not reach: see [`saved_intermediate`] and [`differentiable_once`].
struct DeadEnd {
    name: &'static str,
    function: &'static str,
    error: fn(String) -> Error,
}

impl<E: Engine> BackwardStep<E> for DeadEnd {
    fn name(&self) -> &'static str {
        self.name
    }

    fn backward(&self, _: &BackwardCall<'_, E>, _: Gradients<E>) -> Result<Gradients<E>> {
        Err((self.error)(self.function.to_owned()))
    }

    fn materializes_grads(&self) -> bool {
        false
    }

    fn is_user_code(&self) -> bool {
        false
    }
}

/// A value that the Function of `node` computed inside its forward and saved: its own derivative is not recorded
/// anywhere, so a gradient that flows into it is an error instead of a wrong number.
///
/// It may depend on every input of the Function, and so leads to all of them: then [`grad`](super::grad) does not leave it
/// out as a step that serves nobody.
///
/// # Errors
/// Those of node creation hooks.
pub fn saved_intermediate<E: Engine>(node: &NodeRef<E>, array: E::Array) -> Result<DynTensor<E>> {
    let end = DeadEnd { name: "SavedIntermediate", function: node.name(), error: Error::SavedIntermediate };
    let next_edges = node.next_edges().iter().cloned().collect();
    let node = Node::record(end, next_edges, undeclared::<E>(&array).alone())?;
    Ok(DynTensor::with_origin(array, Origin::Edge(Edge::new(node, 0))))
}

/// What an unrecorded backward of `function` returned, which used tensors of these origins: if one is tracked, so are the
/// results, and a gradient that flows into one is an error. They lead to all that was used, as in [`saved_intermediate`].
///
/// # Errors
/// Those of node creation hooks.
pub fn differentiable_once<E: Engine>(
    function: &'static str,
    used: List<Origin<E>>,
    returned: Gradients<E>,
) -> Result<Gradients<E>> {
    if used.iter().all(|origin| origin.edge().is_none()) {
        return Ok(returned);
    }
    let end = DeadEnd { name: "DifferentiableOnce", function, error: Error::DifferentiableOnce };
    let metadata = returned.iter().flatten().map(|grad| undeclared::<E>(grad.array())).collect();
    let node = Node::record(end, used, metadata)?;
    let mut position = 0;
    let mut attach = |grad: DynTensor<E>| {
        let edge = Edge::new(NodeRef::clone(&node), position);
        position += 1;
        DynTensor::with_origin(grad.into_array(), Origin::Edge(edge))
    };
    Ok(returned.into_iter().map(|grad| grad.map(&mut attach)).collect())
}

/// The metadata of values whose gradient dtype nobody declared.
fn undeclared<E: Engine>(array: &E::Array) -> InputMetadata {
    InputMetadata::new(array.shape().clone(), array.dtype(), GradContract::default_of(array.dtype()))
}
