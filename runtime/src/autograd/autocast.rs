//! An ambient compute dtype: a region in which matrix products are formed in a narrower dtype than their operands'.
//!
//! It chooses what operations compute in and store. It does not touch the contract: casts that it adds are recorded like
//! any other, and gradients travel through them in the dtypes that the operands declared.

use core::cell::Cell;

use super::scoped::Restore;
use super::tensor::DynTensor;
use crate::dtype::DType;
use crate::engine::Engine;
use crate::error::{Error, Result};

thread_local! {
    static COMPUTE: Cell<Option<DType>> = const { Cell::new(None) };
}

/// The dtype that the innermost [`autocast`] on this thread asks for; `None` outside, or where it is switched off.
pub fn autocast_dtype() -> Option<DType> {
    COMPUTE.get()
}

/// Makes this the dtype that is asked for, until the result is dropped.
#[inline]
pub(crate) fn enter_region(dtype: Option<DType>) -> Restore<Option<DType>> {
    Restore::after(&COMPUTE, dtype)
}

/// Runs `body`, in which [`DynTensor::matmul`](crate::DynTensor) converts floating operands (but not `f64`) to `dtype`
/// first, as `torch.autocast` does. `None` switches it off inside another region. Holds for this thread; regions nest.
///
/// * Everything that says its dtype wins over it: typed operations (their dtypes are types), `matmul_in`, an explicit
///   [`cast`](crate::DynTensor::cast).
/// * The region belongs to the graph: the backward of a Function of the user's runs in the region its forward ran in,
///   wherever backward is called from, and a [`checkpoint`](super::checkpoint) is recomputed in it. The backward of a
///   built-in operation ignores it, so a gradient is never narrowed because of it.
/// * [`autocast_dtype`] tells a Function which dtype is asked for, the same in its forward and its backward.
///
/// # Errors
/// [`Error::DType`](crate::Error::DType) if `dtype` is not floating-point; `body` has not run then.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
///
/// let w = DynTensor::from_vec(vec![1.0_f32, 2.0, 3.0, 4.0], [2, 2])?.requiring_grad()?;
/// let y = autocast(DType::BF16, || w.matmul(&w))??;
/// assert_eq!(y.dtype(), DType::BF16);
/// assert_eq!(y.grad_dtype(), Some(GradDType::Exactly(DType::F32)), "its gradient still arrives as `w` declared it");
/// # Ok::<(), Error>(())
/// ```
pub fn autocast<R>(dtype: impl Into<Option<DType>>, body: impl FnOnce() -> R) -> Result<R> {
    let dtype = dtype.into();
    if let Some(got) = dtype.filter(|dtype| !dtype.is_float()) {
        let expected = "a floating-point dtype to compute in".to_owned();
        return Err(Error::DType { operation: "autocast", expected, got });
    }
    let _region = enter_region(dtype);
    Ok(body())
}

impl<E: Engine> DynTensor<E> {
    /// Converted to the compute dtype of a region, if it is of a kind that such regions convert.
    pub(crate) fn autocast_to(&self, dtype: DType) -> Result<Self> {
        let eligible = self.dtype().is_float() && self.dtype() != DType::F64;
        if eligible { self.cast(dtype) } else { Ok(self.clone()) }
    }
}
