//! Losses: cross-entropy of logits with classes, mean squared error. Each is computed in `f32` or wider, and rounded
//! once.

use super::{Binary, Unary, apply_one, only, widened};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::Element;
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::function::{Context, Function, Inputs};
use crate::typed::{Float, Join, Over, Tensor};

struct CrossEntropy;

impl Function<Cpu> for CrossEntropy {
    fn name(&self) -> &'static str {
        "CrossEntropy"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (logits, classes) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([logits, classes]);
        let dtype = logits.dtype();
        let wide = logits.array().cast(dtype.accumulation())?;
        let log = kernels::softmax(&wide, -1, true)?;
        let picked = kernels::gather_along(&log, -1, &classes.array().unsqueeze(-1)?)?;
        let loss = kernels::neg(&kernels::mean(&picked, None, false, None)?)?;
        Ok(DynTensor::from_array(loss.cast(dtype)?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let (grad, logits) = widened(&only(ctx, grads)?, ctx.saved_tensor(0)?)?;
        let classes = ctx.saved_tensor(1)?;
        let extent = logits.shape().last().copied().unwrap_or(0);
        let hot = classes.one_hot(extent, grad.dtype())?;
        let share = grad.div_scalar(classes.shape().element_count() as f64)?;
        Ok([Some(logits.softmax(-1)?.sub(&hot)?.mul(&share)?), None].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    /// The mean of `−ln softmax(x)[class]`, of shape `[]`.
    ///
    /// # Shapes
    /// Logits `[n, c]` and classes `[n]`, or `[c]` and `[]`.
    ///
    /// # Dtypes
    /// Floating logits, classes of any integer dtype. Computed in `f32` or wider and rounded once.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit, [`Error::IndexOutOfRange`] of a class that is not there, [`Error::DType`].
    ///
    /// # Gradient
    /// `dx = G · (softmax(x) − one_hot(class)) / n`.
    ///
    /// # Source
    /// PyTorch `torch.nn.functional.cross_entropy` with class indices.
    pub fn cross_entropy(&self, classes: &Self) -> Result<Self> {
        let batch = self.shape().split_last().map(|(_, batch)| batch);
        if batch != Some(&classes.shape()[..]) || self.shape().len() > 2 {
            let problem = format!(
                "expected logits [n, c] and classes [n], or [c] and [], got {} and {}",
                self.shape(),
                classes.shape()
            );
            return Err(Error::Shape { operation: "cross_entropy", problem });
        }
        apply_one(CrossEntropy, &[self, classes])
    }
}

impl<D: Float, G: Over<D>> Tensor<D, G, Cpu> {
    /// The mean of `−ln softmax(x)[class]`. See [`DynTensor::cross_entropy`].
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::IndexOutOfRange`], [`Error::DType`] if the classes are not integers.
    pub fn cross_entropy<I: Element, H>(&self, classes: &Tensor<I, H>) -> Result<Unary<D, G>> {
        self.as_dyn().cross_entropy(classes.as_dyn()).and_then(Tensor::settle)
    }
}

struct Mse;

impl Function<Cpu> for Mse {
    fn name(&self) -> &'static str {
        "Mse"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (input, target) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([input, target]);
        let dtype = input.dtype().promote(target.dtype());
        let wide = |tensor: &DynTensor<Cpu>| tensor.array().cast(dtype.accumulation());
        let difference = kernels::sub(&wide(input)?, &wide(target)?)?;
        let loss = kernels::mean(&kernels::mul(&difference, &difference)?, None, false, None)?;
        Ok(DynTensor::from_array(loss.cast(dtype)?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let (input, target) = widened(ctx.saved_tensor(0)?, ctx.saved_tensor(1)?)?;
        let (grad, input) = widened(&only(ctx, grads)?, &input)?;
        let share = grad.mul_scalar(2.0)?.div_scalar(input.shape().element_count() as f64)?;
        let slope = input.sub(&target)?.mul(&share)?;
        let by_target = ctx.grad_if_needed(1, || slope.neg().map(Some))?;
        Ok([Some(slope), by_target].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    /// The mean of `(x − target)²`, of shape `[]`.
    ///
    /// # Shapes
    /// Equal: a target that would be broadcast is most often a mistake.
    ///
    /// # Dtypes
    /// Promoted, and floating. Computed in `f32` or wider and rounded once.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ, [`Error::DType`] of integers.
    ///
    /// # Gradient
    /// `dx = 2 · G · (x − target) / n`, and the negative of it for the target.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `mse_loss`; there shapes broadcast, with a warning.
    pub fn mse(&self, target: &Self) -> Result<Self> {
        if self.shape() != target.shape() {
            let problem = format!("shapes {} and {} differ: broadcast first", self.shape(), target.shape());
            return Err(Error::Shape { operation: "mse", problem });
        }
        apply_one(Mse, &[self, target])
    }
}

impl<D: Float, G> Tensor<D, G, Cpu> {
    /// The mean of `(x − target)²`. See [`DynTensor::mse`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ.
    pub fn mse<H>(&self, target: &Tensor<D, H>) -> Result<Binary<D, G, H>>
    where
        G: Join<H>,
        G::Output: Over<D>,
    {
        self.as_dyn().mse(target.as_dyn()).and_then(Tensor::settle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f16s, f32s, f64s, of, values};
    use super::*;

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1, 0.3, -0.4], [2, 3]);
        let classes = of(&[2_i64, 0], [2]);
        check_double(&[&x], |x| x[0].cross_entropy(&classes));
        check_double(&[&f64s(&[0.5, -1.5], [2])], |x| x[0].cross_entropy(&of(&[1_u8], [])));
        check_double(&[&x, &x.mul_scalar(0.3).unwrap()], |x| x[0].mse(x[1]));
    }

    #[test]
    fn equal_logits_cost_the_logarithm_of_their_number() {
        let loss = f64s(&[7.0; 8], [2, 4]).cross_entropy(&of(&[0_i32, 3], [2])).unwrap();
        assert!((values(&loss)[0] - 4.0_f64.ln()).abs() < 1e-15);
        let half = f16s(&[100.0, 0.0], [1, 2]).cross_entropy(&of(&[1_i64], [1])).unwrap();
        assert_eq!((half.dtype(), values(&half)), (crate::DType::F16, vec![100.0]));
    }

    #[test]
    fn a_squared_error_too_large_for_half_precision_has_a_mean_that_fits() {
        let loss = f16s(&[300.0, 0.0, 0.0, 0.0], [4]).mse(&f16s(&[0.0; 4], [4])).unwrap();
        assert_eq!(values(&loss), [22496.0], "90000 / 4 = 22500, to the nearest f16");
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let x = f32s(&[0.0; 6], [2, 3]);
        assert!(x.cross_entropy(&of(&[0_i64; 3], [3])).is_err());
        assert!(matches!(x.cross_entropy(&of(&[0_i64, 3], [2])), Err(Error::IndexOutOfRange { .. })));
        assert!(x.cross_entropy(&f32s(&[0.0; 2], [2])).is_err());
        assert!(f32s(&[0.0], []).cross_entropy(&of(&[0_i64], [])).is_err());
        assert!(x.mse(&f32s(&[0.0; 3], [3])).is_err());
        assert!(of(&[1_i32], [1]).mse(&of(&[1_i32], [1])).is_err());
    }
}
