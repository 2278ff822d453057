//! Sum, difference, product and quotient, element by element, with NumPy broadcasting.

use super::{Broadcast, binary_method, broadcast_of, only};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};

/// The gradient of one operand, summed to its shape if it was broadcast.
fn unbroadcast(
    grad: Result<DynTensor<Cpu>>,
    broadcast: &Broadcast,
    side: fn(&(crate::Shape, crate::Shape)) -> &crate::Shape,
) -> Result<DynTensor<Cpu>> {
    match broadcast {
        Some(shapes) => grad?.sum_to_shape(side(shapes)),
        None => grad,
    }
}

/// `a + b`.
struct Add(Broadcast);

impl Function<Cpu> for Add {
    fn name(&self) -> &'static str {
        "Add"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        let sum = kernels::add(inputs.get(0)?.array(), inputs.get(1)?.array())?;
        Ok(DynTensor::from_array(sum).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        let lhs = ctx.grad_if_needed(0, || unbroadcast(Ok(grad.clone()), &self.0, |shapes| &shapes.0).map(Some))?;
        let rhs = ctx.grad_if_needed(1, || unbroadcast(Ok(grad.clone()), &self.0, |shapes| &shapes.1).map(Some))?;
        Ok([lhs, rhs].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

binary_method! {
    /// `self + rhs`, element by element.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// Of dynamic tensors promoted (`f16` with `f32` is `f32`); 8- and 16-bit floats compute in `f32` and round once. The
    /// gradient arrives in the widest of the result's dtype and the operands' gradient dtypes.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
    ///
    /// # Gradient
    /// `da = G`, `db = G`, each summed to its operand's shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `add.Tensor`.
    add => |lhs, rhs| Add(broadcast_of(lhs, rhs))
}

/// `a · b`.
struct Mul(Broadcast);

impl Function<Cpu> for Mul {
    fn name(&self) -> &'static str {
        "Mul"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (lhs, rhs) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([lhs, rhs]);
        Ok(DynTensor::from_array(kernels::mul(lhs.array(), rhs.array())?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        let (lhs, rhs) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        let dlhs = ctx.grad_if_needed(0, || unbroadcast(grad.mul(rhs), &self.0, |shapes| &shapes.0).map(Some))?;
        let drhs = ctx.grad_if_needed(1, || unbroadcast(grad.mul(lhs), &self.0, |shapes| &shapes.1).map(Some))?;
        Ok([dlhs, drhs].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

binary_method! {
    /// `self · rhs`, element by element.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// As [`add`](Self::add). In backward the gradient multiplies a saved operand in the wider of both dtypes.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
    ///
    /// # Gradient
    /// `da = G · b`, `db = G · a`, each summed to its operand's shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `mul.Tensor`.
    mul => |lhs, rhs| Mul(broadcast_of(lhs, rhs))
}
