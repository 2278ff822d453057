//! The typed tensor: a [`DynTensor`] whose dtypes its type tells.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

use super::grad_type::{AnyGrad, Float, GradType, Untracked};
use super::join::{CastOver, FitsIn};
use crate::autograd::{BackwardOptions, DynTensor};
use crate::contract::GradDType;
use crate::dtype::{DType, Element};
use crate::engine::{Cpu, Engine};
use crate::error::{Error, Result};
use crate::function::Graph;
use crate::shape::Shape;

/// A tensor stored in dtype `D`, whose gradient arrives in dtype `G`, with its values in engine `E`.
///
/// `Tensor<f32>` is the usual one; `Tensor<f16, f32>` is stored in half precision while its gradient arrives in single
/// precision. A `Tensor<f16, f32>` is not a `Tensor<f16>`: to let its gradient be rounded, write
/// [`narrow_grad`](Self::narrow_grad) where the compiler says "expected `Tensor<f16>`, found `Tensor<f16, f32>`".
///
/// There are no operators: everything is a method that returns a `Result`, and a plain number goes to a method that ends in
/// `_scalar`. Values are immutable; cloning is cheap and shares them.
pub struct Tensor<D, G = D, E: Engine = Cpu> {
    inner: DynTensor<E>,
    dtypes: PhantomData<fn() -> (D, G)>,
}

/// A tensor inside `forward` or `backward`: its storage dtype is static, its gradient dtype is not tracked.
///
/// Gradients are values too. [`tensor`](Tensor::tensor) makes a `Tensor<D>` of one, [`value`](Tensor::value) goes the other way.
pub type Value<D, E = Cpu> = Tensor<D, Untracked, E>;

impl<D, G, E: Engine> Tensor<D, G, E> {
    /// Gives a tensor whose dtypes are known to be right its type.
    pub(crate) fn wrap(inner: DynTensor<E>) -> Self {
        Self { inner, dtypes: PhantomData }
    }

    /// The tensor without dtypes in its type.
    pub fn as_dyn(&self) -> &DynTensor<E> {
        &self.inner
    }

    /// The tensor without dtypes in its type.
    pub fn into_dyn(self) -> DynTensor<E> {
        self.inner
    }

    /// The extents of the dimensions.
    pub fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    /// The dtype of the values.
    pub fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    /// Inside `forward` and `backward`: the same tensor as a value.
    pub fn value(&self) -> Value<D, E> {
        Value::wrap(self.inner.clone())
    }
}

impl<D, G, E: Graph> Tensor<D, G, E> {
    /// Whether gradients of it are recorded.
    pub fn requires_grad(&self) -> bool {
        E::is_tracked(&self.inner)
    }

    /// Forgets the gradient accumulated in this leaf.
    pub fn zero_grad(&self) {
        E::forget_grad(&self.inner);
    }

    /// Sends a gradient of one from this scalar to all leaves. See [`backward`](crate::backward()).
    ///
    /// # Errors
    /// [`Error::SeedMissing`] if it is no scalar, [`Error::NoGraph`], and whatever a backward reports.
    pub fn backward(&self) -> Result<()> {
        self.inner.backward()
    }

    /// [`backward`](Self::backward()) with options, such as to keep the graph, or to be strict about dtypes.
    ///
    /// # Errors
    /// As [`backward`](Self::backward()).
    pub fn backward_opts(&self, options: BackwardOptions) -> Result<()> {
        self.inner.backward_opts(options)
    }

    /// Sends `seed` from this tensor to all leaves. It may have any floating dtype.
    ///
    /// # Errors
    /// As [`backward`](Self::backward()), and a seed of another shape.
    pub fn backward_with<S, H>(&self, seed: &Tensor<S, H, E>, options: BackwardOptions) -> Result<()> {
        self.inner.backward_with(&seed.inner, options)
    }
}

impl<D, G: GradType, E: Engine> Tensor<D, G, E> {
    /// Gives the result of an operation the type that the compiler worked out, and sees to it that the graph agrees.
    ///
    /// The graph knows only what is tracked, and an operation may have had nothing to do; the type counts every operand. So
    /// the type may promise a wider gradient dtype: it then holds for the graph too. Nothing is ever narrowed here.
    ///
    /// # Errors
    /// Those of node creation hooks.
    pub(crate) fn settle(inner: DynTensor<E>) -> Result<Self> {
        match (G::GRAD_DTYPE, inner.origin().edge()) {
            (Some(promised), Some(_)) => inner.promising(promised).map(Self::wrap),
            // The type says that there is no gradient.
            (None, Some(_)) if !G::IS_UNTRACKED => Ok(Self::wrap(inner.detach())),
            _ => Ok(Self::wrap(inner)),
        }
    }
}

impl<D: Element, G: GradType, E: Graph> Tensor<D, G, E> {
    /// Gives a dynamic tensor a type.
    ///
    /// # Errors
    /// [`Error::TypedView`] if its storage dtype is not `D`, or it is tracked with another gradient dtype than `G`.
    pub fn from_dyn(tensor: DynTensor<E>) -> Result<Self> {
        if tensor.dtype() != D::DTYPE {
            let (expected, got) = (D::DTYPE.to_string(), tensor.dtype().to_string());
            return Err(Error::TypedView { what: "storage dtype", expected, got });
        }
        let contract = if G::IS_UNTRACKED { None } else { E::tracked_contract(&tensor) };
        if !G::admits(contract) {
            let got = contract.map_or_else(String::new, |contract| contract.grad_dtype.to_string());
            return Err(Error::TypedView { what: "gradient dtype", expected: G::NAME.to_owned(), got });
        }
        Ok(Self::wrap(tensor))
    }

    /// The dtype in which its gradient arrives: what the type says, or for a [`Value`] what the graph knows. `None` if it
    /// cannot have one.
    pub fn grad_dtype(&self) -> Option<GradDType> {
        if !G::IS_UNTRACKED {
            return G::GRAD_DTYPE;
        }
        E::tracked_contract(&self.inner)
            .or_else(|| self.inner.grad_contract())
            .map(|contract| contract.grad_dtype)
    }

    /// The same values in dtype `T`, rounded once to nearest even.
    ///
    /// The gradient arrives in the wider of `T` and `G`, and is passed on. See [`DynTensor::cast`].
    ///
    /// # Errors
    /// If the engine cannot hold the result.
    pub fn cast<T: Element>(&self) -> Result<Tensor<T, G::Output, E>>
    where
        G: CastOver<T>,
    {
        E::converted(&self.inner, T::DTYPE).and_then(Tensor::settle)
    }

    /// The same values as a constant: gradients stop here.
    #[must_use]
    pub fn detach(&self) -> Self {
        Self::wrap(E::constant(&self.inner))
    }

    /// The same tensor, whose gradient is rounded to `H` on its way back: the one explicit way to narrow a gradient.
    ///
    /// # Errors
    /// None at present.
    pub fn narrow_grad<H: Float>(&self) -> Result<Tensor<D, H, E>> {
        E::redeclared(&self.inner, "NarrowGrad", GradDType::Exactly(H::DTYPE)).map(Tensor::wrap)
    }

    /// The same tensor, whose gradient arrives in the wider dtype `H`, sums included, and is rounded to `G` behind it.
    ///
    /// # Errors
    /// None at present.
    pub fn widen_grad<H: Float>(&self) -> Result<Tensor<D, H, E>>
    where
        G: FitsIn<H>,
    {
        E::redeclared(&self.inner, "WidenGrad", GradDType::Exactly(H::DTYPE)).map(Tensor::wrap)
    }
}

impl<D: Float, G: Float, E: Graph> Tensor<D, G, E> {
    /// A leaf with these values, whose gradient is kept in [`grad`](Self::grad) in dtype `G`.
    ///
    /// # Errors
    /// None at present.
    pub fn requiring_grad(&self) -> Result<Self> {
        let same = D::DTYPE == G::DTYPE;
        let grad_dtype = GradDType::Exactly(G::DTYPE);
        E::leaf(&self.inner, (!same).then_some(grad_dtype)).map(Self::wrap)
    }

    /// A leaf with these values, whose gradient is kept in dtype `H`.
    ///
    /// # Errors
    /// None at present.
    pub fn requiring_grad_in<H: Float>(&self) -> Result<Tensor<D, H, E>> {
        E::leaf(&self.inner, Some(GradDType::Exactly(H::DTYPE))).map(Tensor::wrap)
    }
}

impl<D, G: Float, E: Graph> Tensor<D, G, E> {
    /// The gradient that backward calls have accumulated in this leaf; `None` before the first, and on other tensors.
    pub fn grad(&self) -> Option<Value<G, E>> {
        E::accumulated(&self.inner).map(Tensor::wrap)
    }

    /// Puts a gradient in the place of what this leaf has accumulated. See [`DynTensor::set_grad`].
    ///
    /// # Errors
    /// [`Error::NotALeaf`], [`Error::Gradient`] if the shape is another, and [`Error::OwnGrad`].
    pub fn set_grad(&self, grad: Option<&Value<G, E>>) -> Result<()> {
        E::assign_grad(&self.inner, grad.map(Tensor::as_dyn))
    }
}

impl<D: Element + GradType, E: Graph> Value<D, E> {
    /// The same tensor outside `forward` and `backward`, for instance a gradient that an optimizer keeps.
    ///
    /// # Errors
    /// [`Error::TypedView`] if it is tracked, with another gradient dtype than `D`.
    pub fn tensor(&self) -> Result<Tensor<D, D, E>> {
        Tensor::from_dyn(self.inner.clone())
    }
}

impl<D: Float, E: Graph> Tensor<D, AnyGrad, E> {
    /// The gradient that backward calls have accumulated in this leaf, in whatever dtype it came.
    pub fn grad(&self) -> Option<DynTensor<E>> {
        E::accumulated(&self.inner)
    }
}

impl<E: Graph> DynTensor<E> {
    /// Sends a gradient of one from this scalar to all leaves. See [`backward`](crate::backward()).
    ///
    /// # Errors
    /// [`Error::SeedMissing`] if it is no scalar, [`Error::NoGraph`], and whatever a backward reports.
    pub fn backward(&self) -> Result<()> {
        E::run_backward(&[(self, None)], BackwardOptions::new())
    }

    /// [`backward`](Self::backward()) with options.
    ///
    /// # Errors
    /// As [`backward`](Self::backward()).
    pub fn backward_opts(&self, options: BackwardOptions) -> Result<()> {
        E::run_backward(&[(self, None)], options)
    }

    /// Sends `seed` from this tensor to all leaves.
    ///
    /// # Errors
    /// As [`backward`](Self::backward()), and a seed of another shape or not floating-point.
    pub fn backward_with(&self, seed: &Self, options: BackwardOptions) -> Result<()> {
        E::run_backward(&[(self, Some(seed))], options)
    }

    /// Gives this tensor a type. The same as [`Tensor::from_dyn`].
    ///
    /// # Errors
    /// [`Error::TypedView`].
    pub fn typed<D: Element, G: GradType>(&self) -> Result<Tensor<D, G, E>> {
        Tensor::from_dyn(self.clone())
    }
}

/// In a host, whose arrays are tensors of another framework: that tensor, with all its methods.
impl<D, G, E: Engine<Array: Deref>> Deref for Tensor<D, G, E> {
    type Target = <E::Array as Deref>::Target;

    fn deref(&self) -> &Self::Target {
        self.inner.array()
    }
}

impl<D, G, E: Engine> Clone for Tensor<D, G, E> {
    fn clone(&self) -> Self {
        Self::wrap(self.inner.clone())
    }
}

impl<D, G, E: Engine> fmt::Debug for Tensor<D, G, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<D, G, E: Engine> From<Tensor<D, G, E>> for DynTensor<E> {
    fn from(tensor: Tensor<D, G, E>) -> Self {
        tensor.inner
    }
}
