//! Several tensors as one: end to end, or along a new axis.

use super::{Unary, apply_one, only};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::Element;
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::function::{Context, Function, Inputs};
use crate::typed::{Over, Tensor};

/// Joins all inputs, which have these extents along `axis`.
struct Cat {
    axis: isize,
    extents: Vec<usize>,
}

impl Function<Cpu> for Cat {
    fn name(&self) -> &'static str {
        "Cat"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        let arrays: Vec<_> = inputs.iter().flatten().map(|input| input.array().clone()).collect();
        Ok(DynTensor::from_array(kernels::cat(&arrays, self.axis)?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        let mut start = 0;
        let part = |(position, &extent): (usize, &usize)| {
            let from = start;
            start += extent;
            ctx.grad_if_needed(position, || grad.narrow(self.axis, from, extent).map(Some))
        };
        self.extents.iter().enumerate().map(part).collect()
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    /// The tensors end to end along `axis`.
    ///
    /// # Shapes
    /// Equal but for that axis.
    ///
    /// # Dtypes
    /// Promoted.
    ///
    /// # Errors
    /// [`Error::Argument`] if there is none, [`Error::Shape`] of scalars or shapes that differ elsewhere.
    ///
    /// # Gradient
    /// Each tensor gets its part of `G`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `cat`.
    pub fn cat(tensors: &[&Self], axis: isize) -> Result<Self> {
        let Some(first) = tensors.first() else {
            return Err(Error::Argument { operation: "cat", problem: "there is nothing to join".to_owned() });
        };
        let index = first.shape().axis("cat", axis)?;
        let extents = tensors.iter().map(|tensor| tensor.shape().get(index).copied().unwrap_or(0)).collect();
        // Counted from the front once and for all: the ranks agree, or the kernel says so.
        apply_one(Cat { axis: index as isize, extents }, tensors)
    }

    /// The tensors, all of one shape, along a new axis before position `axis` (−1: behind the last).
    ///
    /// # Errors
    /// As [`cat`](Self::cat).
    ///
    /// # Gradient
    /// Each tensor gets its slice of `G`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `stack`.
    pub fn stack(tensors: &[&Self], axis: isize) -> Result<Self> {
        if let Some(other) = tensors.iter().find(|tensor| tensor.shape() != tensors[0].shape()) {
            let problem = format!("shapes {} and {} differ", tensors[0].shape(), other.shape());
            return Err(Error::Shape { operation: "stack", problem });
        }
        let thick = tensors.iter().map(|tensor| tensor.unsqueeze(axis)).collect::<Result<Vec<_>>>()?;
        Self::cat(&thick.iter().collect::<Vec<_>>(), axis)
    }
}

impl<D: Element, G: Over<D>> Tensor<D, G, Cpu> {
    /// The tensors end to end along `axis`. See [`DynTensor::cat`].
    ///
    /// # Errors
    /// [`Error::Argument`] if there is none, [`Error::Shape`] of scalars or shapes that differ elsewhere.
    pub fn cat(tensors: &[&Self], axis: isize) -> Result<Unary<D, G>> {
        let tensors: Vec<_> = tensors.iter().map(|tensor| tensor.as_dyn()).collect();
        DynTensor::cat(&tensors, axis).and_then(Tensor::settle)
    }

    /// The tensors, all of one shape, along a new axis. See [`DynTensor::stack`].
    ///
    /// # Errors
    /// As [`cat`](Self::cat).
    pub fn stack(tensors: &[&Self], axis: isize) -> Result<Unary<D, G>> {
        let tensors: Vec<_> = tensors.iter().map(|tensor| tensor.as_dyn()).collect();
        DynTensor::stack(&tensors, axis).and_then(Tensor::settle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f16s, f32s, f64s, values};
    use super::*;

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let (a, b) = (f64s(&[0.5, -1.5], [2, 1]), f64s(&[2.0, 0.1, 0.3, -0.4], [2, 2]));
        check_double(&[&a, &b], |x| DynTensor::cat(x, -1)?.mul(&DynTensor::cat(&[x[1], x[0]], 1)?));
        check_double(&[&a, &a], |x| DynTensor::stack(x, 0)?.mul(&DynTensor::stack(&[x[0], x[0]], 0)?));
    }

    #[test]
    fn joined_tensors_promote_and_keep_their_order() {
        let joined = DynTensor::cat(&[&f16s(&[1.0], [1]), &f32s(&[2.0, 3.0], [2])], 0).unwrap();
        assert_eq!((joined.dtype(), values(&joined)), (crate::DType::F32, vec![1.0, 2.0, 3.0]));
        let stacked = DynTensor::stack(&[&f32s(&[1.0, 2.0], [2]), &f32s(&[3.0, 4.0], [2])], -1).unwrap();
        assert_eq!(values(&stacked), [1.0, 3.0, 2.0, 4.0]);
    }

    #[test]
    fn nothing_and_what_does_not_fit_cannot_be_joined() {
        let (x, scalar) = (f32s(&[1.0, 2.0], [2]), f32s(&[1.0], []));
        assert!(DynTensor::cat(&[], 0).is_err() && DynTensor::stack(&[], 0).is_err());
        assert!(DynTensor::cat(&[&scalar], 0).is_err());
        assert_eq!(DynTensor::stack(&[&scalar, &scalar], 0).unwrap().shape()[..], [2]);
        assert!(DynTensor::stack(&[&x, &scalar], 0).is_err());
        assert!(DynTensor::cat(&[&x, &scalar], 0).is_err() && DynTensor::cat(&[&x, &x], 1).is_err());
    }
}
