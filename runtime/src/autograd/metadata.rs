//! What a node knows of the gradient it is to receive.

use core::fmt;
use core::sync::atomic::{AtomicU16, Ordering};

use smallvec::SmallVec;

use super::tensor::DynTensor;
use crate::contract::GradContract;
use crate::dtype::DType;
use crate::engine::{Array, Engine};
use crate::error::Result;
use crate::shape::Shape;

/// What a node knows of each of its forward's outputs, which is nearly always one.
pub type Metadata = SmallVec<[InputMetadata; 1]>;

/// Shape, storage dtype and gradient contract of one output of a node's forward, that is of one gradient it receives.
pub struct InputMetadata {
    shape: Shape,
    dtype: DType,
    // A code of `GradContract`; atomic because a leaf may change it while graphs that end there exist.
    contract: AtomicU16,
}

impl InputMetadata {
    /// The metadata of an output with these values' shape and dtype.
    #[inline]
    pub fn new(shape: Shape, dtype: DType, contract: GradContract) -> Self {
        Self { shape, dtype, contract: AtomicU16::new(contract.code()) }
    }

    /// What a node knows that has one output.
    #[inline]
    pub(crate) fn alone(self) -> Metadata {
        SmallVec::from_buf([self])
    }

    /// The shape of the values, and so of the gradient.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The dtype of the values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// What holds for the gradient.
    #[inline]
    pub fn contract(&self) -> GradContract {
        GradContract::from_code(self.contract.load(Ordering::Relaxed))
    }

    pub(crate) fn set_contract(&self, contract: GradContract) {
        self.contract.store(contract.code(), Ordering::Relaxed);
    }

    /// A gradient that nobody sent, in the dtype that is expected: zeros for one that never came, a one for a seed.
    ///
    /// # Errors
    /// If the engine cannot hold it.
    pub(super) fn filled<E: Engine>(&self, value: f64) -> Result<DynTensor<E>> {
        E::Array::full(&self.shape, value, self.zero_dtype()).map(DynTensor::from_array)
    }

    /// The dtype of zeros that stand for a gradient which never came: the declared one, or where any is taken the
    /// values' own, or `f32` where those are integers.
    pub fn zero_dtype(&self) -> DType {
        let own = if self.dtype.is_float() { self.dtype } else { DType::F32 };
        self.contract().grad_dtype.dtype().unwrap_or(own)
    }
}

impl fmt::Debug for InputMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contract = self.contract();
        write!(f, "{} {}, gradient {} ({})", self.dtype, self.shape, contract.grad_dtype, contract.source)
    }
}
