//! The sum of the gradients that arrive at one input of a node.

use smallvec::SmallVec;

use super::pass_through;
use super::tensor::DynTensor;
use crate::contract::GradDType;
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::Result;

/// A growing sum of admitted gradients.
///
/// NOTE [Wide sums]: gradients meet in the gradient dtype, or where any is taken in the widest that arrived; if that
/// has 8 or 16 bits the sum is formed in `f32`, and rounded once on delivery. A single gradient is passed on as it is.
pub(super) enum Sum<E: Engine> {
    /// Nothing yet, or one gradient as it came.
    Single(Option<DynTensor<E>>),
    /// Several, added up in the accumulation dtype of the gradient dtype.
    Wide(DynTensor<E>),
    /// Several where any dtype is taken: which is the widest is known when all are there.
    Mixed(Vec<DynTensor<E>>),
}

impl<E: Engine> Default for Sum<E> {
    fn default() -> Self {
        Self::Single(None)
    }
}

impl<E: Engine> Sum<E> {
    /// Adds a gradient that has been admitted under `grad_dtype`.
    pub(super) fn add(&mut self, grad: DynTensor<E>, grad_dtype: GradDType) -> Result<()> {
        if let Self::Single(slot @ None) = self {
            *slot = Some(grad);
            return Ok(());
        }
        *self = match (core::mem::take(self), grad_dtype) {
            (Self::Single(None), _) => Self::Single(Some(grad)),
            (Self::Single(Some(first)), GradDType::Any) => Self::Mixed(vec![first, grad]),
            (Self::Single(Some(first)), GradDType::Exactly(dtype)) => {
                Self::Wide(pass_through::add(first.cast(dtype.accumulation())?, &grad)?)
            }
            (Self::Wide(sum), _) => Self::Wide(pass_through::add(sum, &grad)?),
            (Self::Mixed(mut grads), _) => {
                grads.push(grad);
                Self::Mixed(grads)
            }
        };
        Ok(())
    }

    /// The sum in the dtype that was promised.
    pub(super) fn deliver(self, grad_dtype: GradDType) -> Result<Option<DynTensor<E>>> {
        match (self, grad_dtype) {
            // A leaf whose gradient dtype was changed in between.
            (Self::Single(Some(grad)), GradDType::Exactly(dtype)) if grad.dtype() != dtype => {
                grad.cast(dtype).map(Some)
            }
            (Self::Single(grad), _) => Ok(grad),
            (Self::Wide(sum), GradDType::Exactly(dtype)) => sum.cast(dtype).map(Some),
            // A leaf whose gradient dtype was changed to `Any` in between keeps the wide sum.
            (Self::Wide(sum), GradDType::Any) => Ok(Some(sum)),
            (Self::Mixed(grads), _) => {
                let widest = DType::widest(grads.iter().map(DynTensor::dtype).collect::<SmallVec<[_; 4]>>());
                let dtype = widest.unwrap_or(DType::F64);
                let mut grads = grads.into_iter();
                let Some(first) = grads.next() else { return Ok(None) };
                let mut sum = first.cast(dtype.accumulation())?;
                for grad in grads {
                    sum = pass_through::add(sum, &grad)?;
                }
                sum.cast(dtype).map(Some)
            }
        }
    }
}
