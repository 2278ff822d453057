//! Sum, difference, product and quotient, element by element, with NumPy broadcasting.

use super::{Broadcast, binary_method, broadcast_of, only, widened};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};

/// The gradient of one operand, summed to its shape if it was broadcast.
pub(super) fn unbroadcast(
    grad: Result<DynTensor<Cpu>>,
    broadcast: &Broadcast,
    side: fn(&(crate::Shape, crate::Shape)) -> &crate::Shape,
) -> Result<DynTensor<Cpu>> {
    match broadcast {
        Some(shapes) => grad?.sum_to_shape(side(shapes)),
        None => grad,
    }
}

/// The gradients of two operands, each formed only if it is wanted and summed to its operand's shape.
pub(super) fn both(
    ctx: &Context<Cpu>,
    broadcast: &Broadcast,
    lhs: impl FnOnce() -> Result<DynTensor<Cpu>>,
    rhs: impl FnOnce() -> Result<DynTensor<Cpu>>,
) -> Result<Gradients<Cpu>> {
    let lhs = ctx.grad_if_needed(0, || unbroadcast(lhs(), broadcast, |shapes| &shapes.0).map(Some))?;
    let rhs = ctx.grad_if_needed(1, || unbroadcast(rhs(), broadcast, |shapes| &shapes.1).map(Some))?;
    Ok([lhs, rhs].into())
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
        both(ctx, &self.0, || Ok(grad.clone()), || Ok(grad.clone()))
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
    add[Element] => |lhs, rhs| Add(broadcast_of(lhs, rhs))
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
        // Where the product will be summed, it must not be rounded first.
        let factor = |saved: &DynTensor<Cpu>| match self.0 {
            Some(_) => widened(&grad, saved).and_then(|(grad, saved)| grad.mul(&saved)),
            None => grad.mul(saved),
        };
        both(ctx, &self.0, || factor(rhs), || factor(lhs))
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
    mul[Element] => |lhs, rhs| Mul(broadcast_of(lhs, rhs))
}

/// `a − b`.
struct Sub(Broadcast);

impl Function<Cpu> for Sub {
    fn name(&self) -> &'static str {
        "Sub"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        let difference = kernels::sub(inputs.get(0)?.array(), inputs.get(1)?.array())?;
        Ok(DynTensor::from_array(difference).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        both(ctx, &self.0, || Ok(grad.clone()), || grad.neg())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

binary_method! {
    /// `self − rhs`, element by element.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// As [`add`](Self::add).
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast, [`Error::DType`](crate::Error::DType) of truth
    /// values.
    ///
    /// # Gradient
    /// `da = G`, `db = −G`, each summed to its operand's shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `sub.Tensor`.
    sub[Element] => |lhs, rhs| Sub(broadcast_of(lhs, rhs))
}

/// `a / b`.
struct Div(Broadcast);

impl Function<Cpu> for Div {
    fn name(&self) -> &'static str {
        "Div"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (lhs, rhs) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([lhs, rhs]);
        Ok(DynTensor::from_array(kernels::div(lhs.array(), rhs.array())?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        let (lhs, rhs) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        let (grad, rhs) = widened(&grad, rhs)?;
        let by_lhs = || grad.div(&rhs);
        both(ctx, &self.0, by_lhs, || grad.neg()?.mul(&lhs.cast(rhs.dtype())?.div(&rhs)?.div(&rhs)?))
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

binary_method! {
    /// `self / rhs`, element by element. By zero it is infinite, or NaN.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// As [`add`](Self::add); of integers it is an `f32`. Backward computes in `f32` or wider and rounds nothing in between.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
    ///
    /// # Gradient
    /// `da = G / b`, `db = −G · (a / b) / b`, each summed to its operand's shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `div.Tensor`.
    div[Float] => |lhs, rhs| Div(broadcast_of(lhs, rhs))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_double, f16s, f32s, f64s};
    use crate::dtype::DType;

    #[test]
    fn gradients_agree_with_finite_differences_also_where_operands_broadcast() {
        let (a, b) = (f64s(&[0.5, -1.5, 2.0, 0.3, 1.1, -0.7], [2, 3]), f64s(&[1.5, -0.8, 2.5], [3]));
        let column = f64s(&[0.9, -1.2], [2, 1]);
        for other in [&b, &column] {
            check(&[&a, other], |x| x[0].add(x[1]));
            check(&[&a, other], |x| x[0].sub(x[1]));
            check_double(&[&a, other], |x| x[0].mul(x[1]));
            check_double(&[&a, other], |x| x[0].div(x[1]));
            check_double(&[other, &a], |x| x[0].div(x[1]));
        }
        check(&[&a], |x| x[0].mul(x[0]));
    }

    #[test]
    fn an_f32_gradient_passes_half_operands_unrounded() {
        let x = f16s(&[1.0], [1]).requiring_grad_in(crate::GradDType::Exactly(DType::F32)).unwrap();
        let y = x.mul(&f16s(&[1.0], [1])).unwrap().div(&f16s(&[1.0], [1])).unwrap();
        y.cast(DType::F32).unwrap().mul(&f32s(&[1e-10], [1])).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [1e-10]);
    }

    #[test]
    fn a_broadcast_product_is_summed_before_it_is_rounded() {
        // 2048 + 1 + 1 in f16: rounded at each step it stays 2048.
        let scale = f16s(&[1.0], [1]).requiring_grad().unwrap();
        scale.mul(&f16s(&[2048.0, 1.0, 1.0], [3])).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(scale.grad().unwrap().to_f64_vec().unwrap(), [2050.0]);
    }
}
