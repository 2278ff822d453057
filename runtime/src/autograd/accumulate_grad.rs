//! The node at a leaf: it adds what arrives to the leaf's gradient.

use core::fmt;
use std::sync::{Mutex, PoisonError};

use smallvec::smallvec;

use super::edge::{Edge, Origin};
use super::input_buffer::Sum;
use super::metadata::InputMetadata;
use super::node::{BackwardCall, BackwardStep, Node, NodeRef};
use super::tensor::{DynTensor, Gradients};
use crate::contract::{GradContract, GradDType};
use crate::engine::{Array, Engine};
use crate::error::{Error, Result};

/// The sink that holds a leaf's gradient.
pub struct AccumulateGrad<E: Engine> {
    /// The leaf's values, so that hooks can be given the leaf.
    array: E::Array,
    grad: Mutex<Option<DynTensor<E>>>,
}

impl<E: Engine> AccumulateGrad<E> {
    pub(super) fn record(array: &E::Array, contract: GradContract) -> Result<NodeRef<E>> {
        let metadata = InputMetadata::new(array.shape().clone(), array.dtype(), contract);
        Node::record(Self { array: array.clone(), grad: Mutex::new(None) }, smallvec![], smallvec![metadata])
    }

    /// The gradient so far.
    pub(crate) fn grad(&self) -> Option<DynTensor<E>> {
        self.grad.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the gradient.
    pub(crate) fn set_grad(&self, grad: Option<DynTensor<E>>) {
        let before = core::mem::replace(&mut *self.grad.lock().unwrap_or_else(PoisonError::into_inner), grad);
        // Dropped outside the lock: with a graph of its own it may hold a lot.
        drop(before);
    }

    /// Changes in which dtype gradients are kept from now on; `.grad` must have it already, if there is one.
    pub(crate) fn set_grad_dtype(&self, metadata: &InputMetadata, contract: GradContract) -> Result<()> {
        let slot = self.grad.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(expected), Some(grad)) = (contract.grad_dtype.dtype(), &*slot)
            && grad.dtype() != expected
        {
            return Err(Error::GradPresent { requested: expected, present: grad.dtype() });
        }
        metadata.set_contract(contract);
        Ok(())
    }

    /// Adds an admitted gradient: in the gradient dtype, 8- and 16-bit ones through `f32`.
    fn accumulate(&self, grad: DynTensor<E>, grad_dtype: GradDType) -> Result<()> {
        let mut slot = self.grad.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = Sum::default();
        if let Some(before) = &*slot {
            // Cloned, so that the gradient is still there if the addition fails.
            sum.add(before.clone(), grad_dtype)?;
        }
        sum.add(grad, grad_dtype)?;
        *slot = sum.deliver(grad_dtype)?;
        Ok(())
    }
}

impl<E: Engine> fmt::Debug for AccumulateGrad<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccumulateGrad").field("grad", &self.grad()).finish()
    }
}

impl<E: Engine> BackwardStep<E> for AccumulateGrad<E> {
    fn name(&self) -> &'static str {
        "AccumulateGrad"
    }

    fn backward(&self, call: &BackwardCall<'_, E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        let grad_dtype = call.node.inputs()[0].contract().grad_dtype;
        for grad in grads.into_iter().flatten() {
            self.accumulate(grad, grad_dtype)?;
            if let Some(hooks) = call.node.existing_hooks() {
                let edge = Edge::new(NodeRef::clone(call.node), 0);
                hooks.run_leaf(&DynTensor::with_origin(self.array.clone(), Origin::Edge(edge)))?;
            }
        }
        Ok(Gradients::new())
    }

    fn materializes_grads(&self) -> bool {
        false
    }

    fn is_user_code(&self) -> bool {
        false
    }

    fn as_leaf(&self) -> Option<&Self> {
        Some(self)
    }
}
