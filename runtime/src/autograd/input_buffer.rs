//! The sum of the gradients that arrive at one input of a node.

use smallvec::SmallVec;

use super::pass_through;
use super::tensor::DynTensor;
use crate::contract::GradDType;
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::Result;
use crate::observe;

/// A growing sum of admitted gradients.
///
/// NOTE [Wide sums]: gradients meet in the gradient dtype, or where any is taken in the widest that arrived; if that
/// has 8 or 16 bits the sum is formed in `f32`, and rounded once on delivery. A single gradient is passed on as it is.
///
/// NOTE [Late rounding]: the engine can round gradients to the gradient dtype, add them and round the sum in one pass. So a
/// gradient that nobody looks at before it is added is kept as it came, and up to [`LATE`] are not added before they are
/// delivered. The values are the same. Where conversions are recorded or observed each is made by itself.
pub(super) enum Sum<E: Engine> {
    /// Nothing yet, or one gradient as it came.
    Single(Option<DynTensor<E>>),
    /// One gradient, still to be rounded to this dtype.
    Unrounded(DynTensor<E>, DType),
    /// Two or more gradients, still to be rounded to this dtype and added.
    Late(Vec<DynTensor<E>>, DType),
    /// Several, added up in the accumulation dtype of the gradient dtype.
    Wide(DynTensor<E>),
    /// Several where any dtype is taken: which is the widest is known when all are there.
    Mixed(Vec<DynTensor<E>>),
}

/// How many gradients wait to be added at once, at most, since they take more memory than their sum.
const LATE: usize = 3;

impl<E: Engine> Default for Sum<E> {
    fn default() -> Self {
        Self::Single(None)
    }
}

/// Whether rounding a gradient and adding it can be left for later. See NOTE [Late rounding].
pub(super) fn may_wait<E: Engine>(grad: &DynTensor<E>) -> bool {
    !grad.requires_grad() && !observe::is_active()
}

impl<E: Engine> Sum<E> {
    /// Adds a gradient that has been admitted under `grad_dtype`.
    pub(super) fn add(&mut self, grad: DynTensor<E>, grad_dtype: GradDType) -> Result<()> {
        if let Self::Single(slot @ None) = self {
            *slot = Some(grad);
            return Ok(());
        }
        *self = match core::mem::take(self) {
            sum if grad_dtype == GradDType::Exactly(grad.dtype()) && may_wait(&grad) => {
                let dtype = grad.dtype();
                sum.with_late(grad, dtype)?
            }
            sum => sum.with(grad, grad_dtype)?,
        };
        Ok(())
    }

    /// Adds a gradient that [`may_wait`] to be rounded to `dtype`, as it was admitted to be.
    pub(super) fn add_unrounded(&mut self, grad: DynTensor<E>, dtype: DType) -> Result<()> {
        *self = match core::mem::take(self) {
            Self::Single(None) => Self::Unrounded(grad, dtype),
            sum => sum.with_late(grad, dtype)?,
        };
        Ok(())
    }

    /// The sum with another gradient, to be rounded to `dtype`.
    fn with_late(self, grad: DynTensor<E>, dtype: DType) -> Result<Self> {
        let wide = dtype.accumulation();
        match self {
            Self::Single(Some(first)) if first.dtype() == dtype && may_wait(&first) => {
                if dtype == wide {
                    // In place, if nobody else holds it.
                    return pass_through::add_rounded(first, &grad, dtype).map(Self::Wide);
                }
                Ok(Self::Late(vec![first, grad], dtype))
            }
            Self::Unrounded(first, to) if to == dtype && may_wait(&first) => {
                Ok(Self::Late(vec![first, grad], dtype))
            }
            Self::Late(mut grads, to) if to == dtype && may_wait(&grad) => {
                grads.push(grad);
                if grads.len() <= LATE { Ok(Self::Late(grads, to)) } else { Self::added(&grads, to) }
            }
            Self::Wide(sum) if sum.dtype() == wide && may_wait(&sum) => {
                pass_through::add_rounded(sum, &grad, dtype).map(Self::Wide)
            }
            sum => sum.with(grad.cast(dtype)?, GradDType::Exactly(dtype)),
        }
    }

    /// The sum with another gradient, admitted under `grad_dtype`, at once.
    fn with(self, grad: DynTensor<E>, grad_dtype: GradDType) -> Result<Self> {
        match (self, grad_dtype) {
            (Self::Single(None), _) => Ok(Self::Single(Some(grad))),
            (Self::Single(Some(first)), GradDType::Any) => Ok(Self::Mixed(vec![first, grad])),
            (Self::Single(Some(first)), GradDType::Exactly(dtype)) => {
                pass_through::add(first.cast(dtype.accumulation())?, &grad).map(Self::Wide)
            }
            (Self::Unrounded(first, to), _) => Self::Single(Some(first.cast(to)?)).with(grad, grad_dtype),
            (Self::Late(grads, to), _) => Self::added(&grads, to)?.with(grad, grad_dtype),
            (Self::Wide(sum), _) => pass_through::add(sum, &grad).map(Self::Wide),
            (Self::Mixed(mut grads), _) => {
                grads.push(grad);
                Ok(Self::Mixed(grads))
            }
        }
    }

    /// The wide sum of gradients that waited.
    fn added(grads: &[DynTensor<E>], rounded: DType) -> Result<Self> {
        pass_through::sum_rounded(grads, rounded, rounded.accumulation()).map(Self::Wide)
    }

    /// The sum in the dtype that was promised.
    pub(super) fn deliver(self, grad_dtype: GradDType) -> Result<Option<DynTensor<E>>> {
        match (self, grad_dtype) {
            // A leaf whose gradient dtype was changed in between.
            (Self::Single(Some(grad)), GradDType::Exactly(dtype)) if grad.dtype() != dtype => {
                grad.cast(dtype).map(Some)
            }
            (Self::Single(grad), _) => Ok(grad),
            (Self::Unrounded(grad, to), _) => Self::Single(Some(grad.cast(to)?)).deliver(grad_dtype),
            (Self::Late(grads, to), GradDType::Exactly(dtype)) if dtype == to => {
                pass_through::sum_rounded(&grads, to, to).map(Some)
            }
            (Self::Late(grads, to), _) => Self::added(&grads, to)?.deliver(grad_dtype),
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
