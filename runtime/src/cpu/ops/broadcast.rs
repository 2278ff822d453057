//! Repetition to a larger shape, and its adjoint: the sum to a smaller one.

use super::{Unary, apply_one, only};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::Element;
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};
use crate::shape::Shape;
use crate::typed::{Over, Tensor};

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
        self.as_dyn().sum_to_shape(shape).and_then(Tensor::settle)
    }

    /// The values repeated along axes of extent 1 and new leading axes. See [`DynTensor::broadcast_to`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if this tensor's shape does not broadcast to `shape`.
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Unary<D, G>> {
        self.as_dyn().broadcast_to(shape).and_then(Tensor::settle)
    }
}
