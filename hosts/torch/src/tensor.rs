//! Typed tensors of the host: a `tch::Tensor` whose dtypes its type tells.

#[cfg(doc)]
use gradpact::Error;
use gradpact::{DynTensor, Element, GradType, Result, Tensor};

use crate::array::{Array, Torch, from_tch};
use crate::differentiate::set_grad_dtype;

/// From tensors of tch to typed ones and back.
///
/// The other direction mostly needs no call: a typed tensor dereferences to its [`tch::Tensor`], so all of tch's methods can be
/// called on it.
pub trait FromTch: Sized {
    /// Gives a tensor of tch its type.
    ///
    /// # Errors
    /// [`Error::TypedView`] if its dtype is another, or it requires a gradient in another dtype than the type says;
    /// [`Error::Argument`] if it is undefined, sparse, or of a dtype that gradpact does not have.
    fn from_tch(tensor: tch::Tensor) -> Result<Self>;

    /// The tensor of tch.
    fn into_tch(self) -> tch::Tensor;

    /// Makes this very tensor a leaf, or none, as the method of tch does that it stands before; the leaf keeps its gradient in the
    /// dtype that the type says, where tch's own would keep it in that of the values.
    ///
    /// # Errors
    /// A [`TorchError`](crate::TorchError) if it is not floating-point, or no leaf.
    fn set_requires_grad(&self, requires_grad: bool) -> Result<Self>;
}

impl<D: Element, G: GradType> FromTch for Tensor<D, G, Torch> {
    fn from_tch(tensor: tch::Tensor) -> Result<Self> {
        Self::from_dyn(DynTensor::from_array(Array::new("from_tch", tensor)?))
    }

    fn into_tch(self) -> tch::Tensor {
        self.into_dyn().into_array().into_tensor()
    }

    fn set_requires_grad(&self, requires_grad: bool) -> Result<Self> {
        let leaf = self.as_dyn().set_requires_grad(requires_grad)?;
        match self.grad_dtype() {
            Some(grad_dtype) if requires_grad => set_grad_dtype(leaf.array(), grad_dtype)?,
            _ => {}
        }
        Self::from_dyn(leaf)
    }
}

/// The same for tensors whose dtypes are known at run time.
impl FromTch for DynTensor<Torch> {
    fn from_tch(tensor: tch::Tensor) -> Result<Self> {
        Array::new("from_tch", tensor).map(Self::from_array)
    }

    fn into_tch(self) -> tch::Tensor {
        self.into_array().into_tensor()
    }

    fn set_requires_grad(&self, requires_grad: bool) -> Result<Self> {
        let leaf = self.array().f_set_requires_grad(requires_grad).map_err(|error| from_tch(&error))?;
        Self::from_tch(leaf)
    }
}
