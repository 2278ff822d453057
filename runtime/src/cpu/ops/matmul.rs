//! Matrix products, of batches and of vectors too.

use super::{Binary, apply_one, only};
use crate::autograd::{DynTensor, Gradients, Outputs, autocast_dtype};
use crate::cpu::kernels;
use crate::dtype::{DType, Element};
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};
use crate::typed::{CastOver, Join, Over, Tensor};

/// The product, stored in a dtype of its own if one is chosen.
struct MatMul(Option<DType>);

impl Function<Cpu> for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (lhs, rhs) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([lhs, rhs]);
        Ok(DynTensor::from_array(kernels::matmul(lhs.array(), rhs.array(), self.0)?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let mut grad = only(ctx, grads)?;
        let (lhs, rhs) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        // As matrices: a vector is a row on the left and a column on the right.
        let mut left = lhs.clone();
        let mut right = rhs.clone();
        if rhs.shape().len() == 1 {
            (right, grad) = (right.unsqueeze(1)?, grad.unsqueeze(-1)?);
        }
        if lhs.shape().len() == 1 {
            (left, grad) = (left.unsqueeze(0)?, grad.unsqueeze(-2)?);
        }
        if right.shape().len() == 2 && left.shape().len() > 2 {
            // One matrix on the right for a whole batch: the sum over the batch is a product too.
            (left, grad) = (left.flatten(0, -2)?, grad.flatten(0, -2)?);
        }
        let dlhs = ctx.grad_if_needed(0, || {
            let full = product(&grad, &right.transpose(-1, -2)?)?;
            full.sum_to_shape(left.shape())?.reshape(lhs.shape()).map(Some)
        })?;
        let drhs = ctx.grad_if_needed(1, || {
            let full = product(&left.transpose(-1, -2)?, &grad)?;
            full.sum_to_shape(right.shape())?.reshape(rhs.shape()).map(Some)
        })?;
        Ok([dlhs, drhs].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

/// The product in the dtype that it is summed in: the edge rounds it, once, to what is declared there.
fn product(lhs: &DynTensor<Cpu>, rhs: &DynTensor<Cpu>) -> Result<DynTensor<Cpu>> {
    lhs.matmul_in(rhs, lhs.dtype().promote(rhs.dtype()).accumulation())
}

/// The product in the dtype of the operands, whatever region this is.
pub(super) fn multiply(lhs: &DynTensor<Cpu>, rhs: &DynTensor<Cpu>) -> Result<DynTensor<Cpu>> {
    apply_one(MatMul(None), &[lhs, rhs])
}

impl DynTensor<Cpu> {
    /// The matrix product of `self` and `rhs`.
    ///
    /// # Shapes
    /// `[…, m, k]` and `[…, k, n]` give `[…, m, n]`; leading axes broadcast by NumPy's rules. A vector is a row on the left
    /// and a column on the right, and that axis is not in the result.
    ///
    /// # Dtypes
    /// Promoted; inside [`autocast`](crate::autocast), converted to its dtype first. 8- and 16-bit floats are multiplied and summed in `f32` and rounded once, in backward too. The gradient
    /// arrives in the widest of the result's dtype and the operands' gradient dtypes.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not fit.
    ///
    /// # Gradient
    /// `dA = G · Bᵀ`, `dB = Aᵀ · G`, each summed to its operand's shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `mm` and `bmm`.
    pub fn matmul(&self, rhs: &Self) -> Result<Self> {
        match autocast_dtype() {
            None => multiply(self, rhs),
            Some(dtype) => multiply(&self.autocast_to(dtype)?, &rhs.autocast_to(dtype)?),
        }
    }

    /// The matrix product, stored in `dtype` without rounding to the operands' dtype in between.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul).
    pub fn matmul_in(&self, rhs: &Self, dtype: DType) -> Result<Self> {
        apply_one(MatMul(Some(dtype)), &[self, rhs])
    }
}

impl<D: Element, G> Tensor<D, G, Cpu> {
    /// The matrix product of `self` and `rhs`. See [`DynTensor::matmul`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not fit.
    pub fn matmul<H>(&self, rhs: &Tensor<D, H>) -> Result<Binary<D, G, H>>
    where
        G: Join<H>,
        G::Output: Over<D>,
    {
        // The type says the dtype, so `autocast` does not.
        multiply(self.as_dyn(), rhs.as_dyn()).and_then(Tensor::settle)
    }

    /// The matrix product, stored in `T`. See [`DynTensor::matmul_in`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not fit.
    pub fn matmul_in<T: Element, H>(
        &self,
        rhs: &Tensor<D, H>,
    ) -> Result<Tensor<T, <G::Output as CastOver<T>>::Output>>
    where
        G: Join<H>,
        G::Output: CastOver<T>,
    {
        self.as_dyn().matmul_in(rhs.as_dyn(), T::DTYPE).and_then(Tensor::settle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f32s, f64s, of, values};
    use crate::GradDType;
    use crate::dtype::{DType, bf16};

    #[test]
    fn gradients_agree_with_finite_differences_twice_for_every_kind_of_operand() {
        let data = |shape: &[usize]| {
            let values: Vec<f64> =
                (0..shape.iter().product()).map(|v: usize| (v as f64 * 1.7).sin()).collect();
            f64s(&values, shape)
        };
        for (left, right) in [
            (&[2, 3][..], &[3, 2][..]),
            (&[3], &[3]),
            (&[3], &[3, 2]),
            (&[2, 3], &[3]),
            (&[2, 2, 3], &[3, 2]),
            (&[2, 1, 2, 3], &[2, 3, 1]),
            (&[3, 2], &[2, 2, 1]),
            (&[2, 2, 3], &[3]),
            (&[3], &[2, 3, 1]),
        ] {
            check_double(&[&data(left), &data(right)], |x| x[0].matmul(x[1]));
        }
    }

    #[test]
    fn an_f32_gradient_of_bf16_operands_is_never_rounded_to_16_bits() {
        let half =
            |values: &[f32]| of(&values.iter().map(|&v| bf16::from_f32(v)).collect::<Vec<_>>(), [1, 2]);
        let x = half(&[1.0, 2.0]).requiring_grad_in(GradDType::Exactly(DType::F32)).unwrap();
        let w = half(&[3.0, 5.0]).transpose(0, 1).unwrap();
        let seed = f32s(&[1.000_001], [1, 1]);
        let y = x.matmul(&w).unwrap();
        assert_eq!(y.dtype(), DType::BF16);
        y.backward_with(&seed, crate::BackwardOptions::new()).unwrap();
        let expected = [3.0 * 1.000_001_f32, 5.0 * 1.000_001].map(f64::from);
        assert_eq!(values(&x.grad().unwrap()), expected);
    }

    #[test]
    fn a_wider_result_is_not_rounded_in_between() {
        let ones = of(&[bf16::from_f32(1.0); 257], [257]);
        assert_eq!(values(&ones.matmul(&ones).unwrap()), [256.0]);
        assert_eq!(values(&ones.matmul_in(&ones, DType::F32).unwrap()), [257.0]);
    }
}
