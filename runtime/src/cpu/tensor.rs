//! Making tensors of the CPU engine from data, and reading them. No arithmetic.

use core::fmt;

use super::{Array, Generator, kernels};
use crate::autograd::DynTensor;
use crate::contract::Source;
use crate::dtype::{DType, Element};
use crate::engine::Cpu;
use crate::error::Result;
use crate::shape::Shape;
use crate::typed::{Float, GradType, Tensor};

impl DynTensor<Cpu> {
    /// Takes over `elements`, row-major, as a tensor of `shape`.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) if the shape holds another number of elements.
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: impl Into<Shape>) -> Result<Self> {
        Array::from_vec(elements, shape).map(Self::from_array)
    }

    /// Copies `elements`, row-major, into a tensor of `shape`.
    ///
    /// # Errors
    /// As [`from_vec`](Self::from_vec).
    pub fn from_slice<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Result<Self> {
        Array::from_slice(elements, shape).map(Self::from_array)
    }

    /// A tensor of shape `[]`, `value` rounded once to `dtype`.
    pub fn scalar(value: f64, dtype: DType) -> Self {
        Self::from_array(Array::scalar_of(value, dtype))
    }

    /// A tensor filled with `value`, rounded once to `dtype`.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn full(shape: impl Into<Shape>, value: f64, dtype: DType) -> Result<Self> {
        Array::full(shape, value, dtype).map(Self::from_array)
    }

    /// Zeros.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn zeros(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Self::full(shape, 0.0, dtype)
    }

    /// Ones.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn ones(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Self::full(shape, 1.0, dtype)
    }

    /// `start`, `start + step`, … up to but not including `end`, each rounded once to `dtype`.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if a number is not finite, or the end is never reached.
    pub fn arange(start: f64, end: f64, step: f64, dtype: DType) -> Result<Self> {
        kernels::arange(start, end, step, dtype).map(Self::from_array)
    }

    /// `steps` evenly spaced values from `start` to `end`, both included, each rounded once to `dtype`.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn linspace(start: f64, end: f64, steps: usize, dtype: DType) -> Result<Self> {
        kernels::linspace(start, end, steps, dtype).map(Self::from_array)
    }

    /// Random numbers, uniform in `[0, 1)`.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) of integers, [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn rand(shape: impl Into<Shape>, dtype: DType, generator: &mut Generator) -> Result<Self> {
        kernels::rand(&shape.into(), dtype, generator).map(Self::from_array)
    }

    /// Random numbers, normally distributed with mean 0 and variance 1.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) of integers, [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn randn(shape: impl Into<Shape>, dtype: DType, generator: &mut Generator) -> Result<Self> {
        kernels::randn(&shape.into(), dtype, generator).map(Self::from_array)
    }

    /// A copy of the elements, row-major. Nothing is converted.
    ///
    /// # Errors
    /// [`Error::TypedView`](crate::Error::TypedView) if they are not of type `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.array().to_vec()
    }

    /// The elements as `f64`s, row-major; exact but for large `i64`s.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow) if there is not so much memory (a broadcast view takes none).
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        self.array().to_f64_vec()
    }

    /// The only element. Nothing is converted.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if there is not exactly one, [`Error::TypedView`](crate::Error::TypedView) if it is not of
    /// type `T`.
    pub fn item<T: Element>(&self) -> Result<T> {
        self.array().item()
    }
}

impl<D: Element, G: GradType> Tensor<D, G, Cpu> {
    /// Takes over `elements`, row-major, as a tensor of `shape`.
    ///
    /// # Errors
    /// [`Error::Length`](crate::Error::Length) if the shape holds another number of elements.
    pub fn from_vec(elements: Vec<D>, shape: impl Into<Shape>) -> Result<Self> {
        DynTensor::from_vec(elements, shape).map(Self::wrap)
    }

    /// Copies `elements`, row-major, into a tensor of `shape`.
    ///
    /// # Errors
    /// As [`from_vec`](Self::from_vec).
    pub fn from_slice(elements: &[D], shape: impl Into<Shape>) -> Result<Self> {
        DynTensor::from_slice(elements, shape).map(Self::wrap)
    }

    /// A tensor of shape `[]`, `value` rounded once to `D`.
    pub fn scalar(value: f64) -> Self {
        Self::wrap(DynTensor::scalar(value, D::DTYPE))
    }

    /// A tensor filled with `value`, rounded once to `D`.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn full(shape: impl Into<Shape>, value: f64) -> Result<Self> {
        DynTensor::full(shape, value, D::DTYPE).map(Self::wrap)
    }

    /// Zeros.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn zeros(shape: impl Into<Shape>) -> Result<Self> {
        Self::full(shape, 0.0)
    }

    /// Ones.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn ones(shape: impl Into<Shape>) -> Result<Self> {
        Self::full(shape, 1.0)
    }

    /// `start`, `start + step`, … up to but not including `end`, each rounded once.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if a number is not finite, or the end is never reached.
    pub fn arange(start: f64, end: f64, step: f64) -> Result<Self> {
        DynTensor::arange(start, end, step, D::DTYPE).map(Self::wrap)
    }

    /// `steps` evenly spaced values from `start` to `end`, both included, each rounded once.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn linspace(start: f64, end: f64, steps: usize) -> Result<Self> {
        DynTensor::linspace(start, end, steps, D::DTYPE).map(Self::wrap)
    }

    /// A copy of the elements, row-major.
    ///
    /// # Errors
    /// None at present.
    pub fn to_vec(&self) -> Result<Vec<D>> {
        self.as_dyn().to_vec()
    }

    /// The only element.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if there is not exactly one.
    pub fn item(&self) -> Result<D> {
        self.as_dyn().item()
    }
}

impl<D: Float, G: GradType> Tensor<D, G, Cpu> {
    /// Random numbers, uniform in `[0, 1)`.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn rand(shape: impl Into<Shape>, generator: &mut Generator) -> Result<Self> {
        DynTensor::rand(shape, D::DTYPE, generator).map(Self::wrap)
    }

    /// Random numbers, normally distributed with mean 0 and variance 1.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow).
    pub fn randn(shape: impl Into<Shape>, generator: &mut Generator) -> Result<Self> {
        DynTensor::randn(shape, D::DTYPE, generator).map(Self::wrap)
    }
}

/// Prints values, shape, dtype, and the dtype in which the gradient arrives.
impl fmt::Display for DynTensor<Cpu> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nshape {}, {}", self.array(), self.shape(), self.dtype())?;
        match (self.requires_grad(), self.grad_contract()) {
            (true, Some(contract)) => {
                write!(f, ", gradient {}", contract.grad_dtype)?;
                if contract.source == Source::Declared { f.write_str(" (declared)") } else { Ok(()) }
            }
            _ => f.write_str(", untracked"),
        }
    }
}

impl<D, G> fmt::Display for Tensor<D, G, Cpu> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_dyn().fmt(f)
    }
}
