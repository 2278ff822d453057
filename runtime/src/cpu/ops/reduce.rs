//! Sum and mean, over all elements or along axes, and the way back: broadcasting. Extrema are in `extremum`.

use super::{Unary, apply_one, only};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::{DType, Element};
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};
use crate::shape::Shape;
use crate::typed::{CastOver, Float, Over, Tensor};

/// Which elements are reduced to one, and in which dtype the result is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Reduction {
    /// `None` for all axes.
    pub(super) axes: Option<Vec<isize>>,
    pub(super) keepdim: bool,
    /// `None` for the input's own (`i64` for integers).
    pub(super) dtype: Option<DType>,
}

impl Reduction {
    fn axes(&self) -> Option<&[isize]> {
        self.axes.as_deref()
    }

    /// `shape` with an extent of 1 on the reduced axes: the shape of the result with `keepdim`.
    pub(super) fn kept(&self, operation: &'static str, shape: &Shape) -> Result<Shape> {
        let Some(axes) = &self.axes else { return Ok(shape.iter().map(|_| 1).collect()) };
        axes.iter().try_fold(shape.clone(), |kept, &axis| Ok(kept.with_extent(shape.axis(operation, axis)?, 1)))
    }
}

/// Sum over some axes; `shape` is the input's.
struct Sum {
    reduction: Reduction,
    shape: Shape,
}

impl Function<Cpu> for Sum {
    fn name(&self) -> &'static str {
        "Sum"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        let Reduction { keepdim, dtype, .. } = self.reduction;
        let sum = kernels::sum(inputs.get(0)?.array(), self.reduction.axes(), keepdim, dtype)?;
        Ok(DynTensor::from_array(sum).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?.reshape(self.reduction.kept("sum", &self.shape)?)?;
        Ok(grad.broadcast_to(self.shape.clone())?.into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    fn sum_by(&self, reduction: Reduction) -> Result<Self> {
        apply_one(Sum { reduction, shape: self.shape().clone() }, &[self])
    }

    /// The sum of all elements, of shape `[]`.
    ///
    /// # Dtypes
    /// That of the input; integers and `bool` are summed in `i64`. 8- and 16-bit floats are summed in `f32` and rounded once.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Gradient
    /// `dx = G`, broadcast.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `sum`.
    pub fn sum(&self) -> Result<Self> {
        self.sum_by(Reduction::default())
    }

    /// The sum of all elements, formed and stored in a dtype at least as wide as `dtype`, without rounding in between.
    ///
    /// # Errors
    /// None at present.
    pub fn sum_in(&self, dtype: DType) -> Result<Self> {
        self.sum_by(Reduction { dtype: Some(dtype), ..Reduction::default() })
    }

    /// The sums along `axes`, which stay with extent 1 if `keepdim`.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
    pub fn sum_axes(&self, axes: &[isize], keepdim: bool) -> Result<Self> {
        self.sum_by(Reduction { axes: Some(axes.to_vec()), keepdim, dtype: None })
    }

    /// The sums along `axes`, stored in `dtype`.
    ///
    /// # Errors
    /// As [`sum_axes`](Self::sum_axes).
    pub fn sum_axes_in(&self, axes: &[isize], keepdim: bool, dtype: DType) -> Result<Self> {
        self.sum_by(Reduction { axes: Some(axes.to_vec()), keepdim, dtype: Some(dtype) })
    }
}

impl<D: Float, G: Over<D>> Tensor<D, G, Cpu> {
    /// The sum of all elements, of shape `[]`. See [`DynTensor::sum`].
    ///
    /// # Errors
    /// None at present.
    pub fn sum(&self) -> Result<Unary<D, G>> {
        self.as_dyn().sum().map(Tensor::wrap)
    }

    /// The sums along `axes`, which stay with extent 1 if `keepdim`. See [`DynTensor::sum_axes`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
    pub fn sum_axes(&self, axes: &[isize], keepdim: bool) -> Result<Unary<D, G>> {
        self.as_dyn().sum_axes(axes, keepdim).map(Tensor::wrap)
    }
}

impl<D: Element, G> Tensor<D, G, Cpu> {
    /// The sum of all elements, formed and stored in `T`. See [`DynTensor::sum_in`].
    ///
    /// # Errors
    /// None at present.
    pub fn sum_in<T: Element>(&self) -> Result<Tensor<T, G::Output, Cpu>>
    where
        G: CastOver<T>,
    {
        self.as_dyn().sum_in(T::DTYPE).map(Tensor::wrap)
    }
}

/// Sum to a smaller shape that broadcasts to the input's; `shape` is the input's.
struct SumToShape {
    target: Shape,
    shape: Shape,
}

impl Function<Cpu> for SumToShape {
    fn name(&self) -> &'static str {
        "SumToShape"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        Ok(DynTensor::from_array(kernels::sum_to_shape(inputs.get(0)?.array(), &self.target)?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        Ok(only(ctx, grads)?.broadcast_to(self.shape.clone())?.into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

/// Repetition along axes of extent 1 and new leading axes; `shape` is the input's.
struct BroadcastTo {
    target: Shape,
    shape: Shape,
}

impl Function<Cpu> for BroadcastTo {
    fn name(&self) -> &'static str {
        "BroadcastTo"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        Ok(DynTensor::from_array(inputs.get(0)?.array().broadcast_to(&self.target)?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        Ok(only(ctx, grads)?.sum_to_shape(&self.shape)?.into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    /// The sum over the axes that broadcasting `shape` to this tensor's shape would repeat or add.
    ///
    /// # Dtypes
    /// As [`sum`](Self::sum).
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `shape` does not broadcast to this tensor's shape.
    ///
    /// # Gradient
    /// `dx = G`, broadcast.
    ///
    /// # Source
    /// PyTorch `sum_to_size`.
    pub fn sum_to_shape(&self, shape: &Shape) -> Result<Self> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        apply_one(SumToShape { target: shape.clone(), shape: self.shape().clone() }, &[self])
    }

    /// The values repeated along axes of extent 1 and new leading axes, without a copy.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if this tensor's shape does not broadcast to `shape`.
    ///
    /// # Gradient
    /// `dx = G`, summed to the shape of `x`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `expand`.
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Self> {
        let target = shape.into();
        if *self.shape() == target {
            return Ok(self.clone());
        }
        apply_one(BroadcastTo { target, shape: self.shape().clone() }, &[self])
    }
}

impl<D: Element, G: Over<D>> Tensor<D, G, Cpu> {
    /// The sum over the axes that broadcasting would repeat or add. See [`DynTensor::sum_to_shape`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if `shape` does not broadcast to this tensor's shape.
    pub fn sum_to_shape(&self, shape: &Shape) -> Result<Unary<D, G>> {
        self.as_dyn().sum_to_shape(shape).map(Tensor::wrap)
    }

    /// The values repeated along axes of extent 1 and new leading axes. See [`DynTensor::broadcast_to`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if this tensor's shape does not broadcast to `shape`.
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Unary<D, G>> {
        self.as_dyn().broadcast_to(shape).map(Tensor::wrap)
    }
}
