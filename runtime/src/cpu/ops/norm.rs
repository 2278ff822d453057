//! Layer normalization, with optional scale and shift.

use super::{Unary, only, only_output, widened};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::{Array, kernels};
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::function::{Context, Function, Inputs, apply_optional};
use crate::shape::Shape;
use crate::typed::{Float, Over, Tensor};

/// Over the last `rank` axes.
struct LayerNorm {
    rank: usize,
    epsilon: f64,
}

impl LayerNorm {
    fn axes(&self) -> Vec<isize> {
        (1..=self.rank as isize).map(|axis| -axis).collect()
    }

    /// `(x − mean) / √(variance + ε)`, and the factor; `x` in the dtype that is computed in.
    fn normalized(&self, x: &Array) -> Result<Array> {
        let axes = self.axes();
        let mean = |array: &Array| kernels::mean(array, Some(&axes), true, None);
        let centered = kernels::sub(x, &mean(x)?)?;
        let variance = mean(&kernels::mul(&centered, &centered)?)?;
        let factor = kernels::rsqrt(&kernels::add_scalar(&variance, self.epsilon)?)?;
        kernels::mul(&centered, &factor)
    }

    /// The same, recorded: normalized values and factor.
    fn recompute(&self, x: &DynTensor<Cpu>) -> Result<(DynTensor<Cpu>, DynTensor<Cpu>)> {
        let axes = self.axes();
        let centered = x.sub(&x.mean_axes(&axes, true)?)?;
        let variance = centered.mul(&centered)?.mean_axes(&axes, true)?;
        let factor = variance.add_scalar(self.epsilon)?.rsqrt()?;
        Ok((centered.mul(&factor)?, factor))
    }
}

impl Function<Cpu> for LayerNorm {
    fn name(&self) -> &'static str {
        "LayerNorm"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (x, weight, bias) = (inputs.get(0)?, inputs.optional(1), inputs.optional(2));
        ctx.carry_grad_dtype();
        let saved: Vec<DynTensor<Cpu>> = [Some(x), weight].into_iter().flatten().cloned().collect();
        ctx.save_for_backward(&saved[..]);
        let dtype = inputs.iter().flatten().fold(x.dtype(), |dtype, input| dtype.promote(input.dtype()));
        let mut y = self.normalized(&x.array().cast(dtype.accumulation())?)?;
        if let Some(weight) = weight {
            y = kernels::mul(&y, weight.array())?;
        }
        if let Some(bias) = bias {
            y = kernels::add(&y, bias.array())?;
        }
        Ok(DynTensor::from_array(y.cast(dtype)?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let saved = ctx.saved_tensors()?;
        let (grad, x) = widened(&only(ctx, grads)?, ctx.saved_tensor(0)?)?;
        let (normalized, factor) = self.recompute(&x)?;
        let shape: Shape = x.shape().iter().skip(x.shape().len() - self.rank).copied().collect();
        let by_x = ctx.grad_if_needed(0, || {
            let grad = if let Some(weight) = saved.get(1) { grad.mul(weight)? } else { grad.clone() };
            let axes = self.axes();
            let along = normalized.mul(&grad.mul(&normalized)?.mean_axes(&axes, true)?)?;
            grad.sub(&grad.mean_axes(&axes, true)?)?.sub(&along)?.mul(&factor).map(Some)
        })?;
        let by_weight = ctx.grad_if_needed(1, || grad.mul(&normalized)?.sum_to_shape(&shape).map(Some))?;
        let by_bias = ctx.grad_if_needed(2, || grad.sum_to_shape(&shape).map(Some))?;
        Ok([by_x, by_weight, by_bias].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    /// `(x − mean) / √(variance + ε) · weight + bias`, over the last axes, whose extents are `shape`.
    ///
    /// # Shapes
    /// Weight and bias have shape `shape`. The variance is that of all elements, divided by their number.
    ///
    /// # Dtypes
    /// Promoted, and floating. Computed in `f32` or wider and rounded once, in backward too.
    ///
    /// # Errors
    /// [`Error::Shape`] if the last extents are others, [`Error::DType`] of integers.
    ///
    /// # Gradient
    /// With `n` the normalized values, `f` the factor and `g = G · weight`: `dx = f · (g − mean(g) − n · mean(g·n))`,
    /// `dweight = Σ G·n`, `dbias = Σ G`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `native_layer_norm`.
    pub fn layer_norm(
        &self,
        shape: impl Into<Shape>,
        weight: Option<&Self>,
        bias: Option<&Self>,
        epsilon: f64,
    ) -> Result<Self> {
        let (shape, operation) = (shape.into(), "layer_norm");
        if shape.is_empty() || !self.shape().ends_with(&shape) {
            let problem = format!("shape {} does not end with {shape}", self.shape());
            return Err(Error::Shape { operation, problem });
        }
        if let Some(other) = [weight, bias].into_iter().flatten().find(|tensor| *tensor.shape() != shape) {
            let problem = format!("weight and bias must have shape {shape}, got {}", other.shape());
            return Err(Error::Shape { operation, problem });
        }
        if !self.dtype().is_float() {
            let expected = "a floating dtype".to_owned();
            return Err(Error::DType { operation, expected, got: self.dtype() });
        }
        let function = LayerNorm { rank: shape.len(), epsilon };
        only_output("LayerNorm", apply_optional(function, &[Some(self), weight, bias])?)
    }
}

impl<D: Float, G: Over<D>> Tensor<D, G, Cpu> {
    /// Normalization over the last axes. See [`DynTensor::layer_norm`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the last extents are others.
    pub fn layer_norm(
        &self,
        shape: impl Into<Shape>,
        weight: Option<&Self>,
        bias: Option<&Self>,
        epsilon: f64,
    ) -> Result<Unary<D, G>> {
        let (weight, bias) = (weight.map(Self::as_dyn), bias.map(Self::as_dyn));
        self.as_dyn().layer_norm(shape, weight, bias, epsilon).and_then(Tensor::settle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f16s, f32s, f64s, of, values};

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1, 0.3, -0.4, 0.9, 1.1], [2, 2, 2]);
        let (weight, bias) = (f64s(&[0.7, -1.2], [2]), f64s(&[0.1, 0.2], [2]));
        check_double(&[&x], |x| x[0].layer_norm([2, 2], None, None, 1e-2));
        check_double(&[&x, &weight, &bias], |x| x[0].layer_norm(2, Some(x[1]), Some(x[2]), 1e-2));
        check_double(&[&x, &bias], |x| x[0].layer_norm(2, None, Some(x[1]), 1e-2));
    }

    #[test]
    fn normalized_values_have_mean_zero_and_variance_one() {
        let y = values(&f64s(&[1.0, 2.0, 3.0, 4.0], [4]).layer_norm(4, None, None, 0.0).unwrap());
        assert!(y.iter().sum::<f64>().abs() < 1e-15);
        assert!((y.iter().map(|value| value * value).sum::<f64>() / 4.0 - 1.0).abs() < 1e-14);
        // The squares do not fit in f16, the result does.
        let y = values(&f16s(&[-1000.0, 1000.0], [2]).layer_norm(2, None, None, 0.0).unwrap());
        assert_eq!(y, [-1.0, 1.0]);
    }

    #[test]
    fn shapes_must_fit_at_the_end() {
        let x = f32s(&[0.0; 6], [2, 3]);
        assert!(x.layer_norm(2, None, None, 1e-5).is_err());
        assert!(x.layer_norm([], None, None, 1e-5).is_err());
        assert!(x.layer_norm(3, Some(&f32s(&[1.0], [1])), None, 1e-5).is_err());
        assert!(of(&[1_i32], [1]).layer_norm(1, None, None, 1e-5).is_err());
        assert_eq!(f32s(&[], [0, 3]).layer_norm(3, None, None, 1e-5).unwrap().shape()[..], [0, 3]);
    }
}
