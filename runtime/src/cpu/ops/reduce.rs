//! Sum and mean, over all elements or along axes. The way back is in `broadcast`, extrema are in `extremum`.

use super::{Unary, apply_one, only};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::{DType, Element};
use crate::engine::Cpu;
use crate::error::{Error, Result};
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
    /// Whether partial sums are rounded to the input's own dtype, and not only the result.
    pub(super) rounding: bool,
}

impl Reduction {
    pub(super) fn axes(&self) -> Option<&[isize]> {
        self.axes.as_deref()
    }

    /// `shape` with an extent of 1 on the reduced axes: the shape of the result with `keepdim`.
    pub(super) fn kept(&self, operation: &'static str, shape: &Shape) -> Result<Shape> {
        let Some(axes) = &self.axes else { return Ok(shape.iter().map(|_| 1).collect()) };
        axes.iter()
            .try_fold(shape.clone(), |kept, &axis| Ok(kept.with_extent(shape.axis(operation, axis)?, 1)))
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
        let Reduction { keepdim, dtype, rounding, .. } = self.reduction;
        let (array, axes) = (inputs.get(0)?.array(), self.reduction.axes());
        let sum = match rounding {
            true => kernels::sum_rounding(array, axes, keepdim)?,
            false => kernels::sum(array, axes, keepdim, dtype)?,
        };
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
        self.sum_by(Reduction { axes: Some(axes.to_vec()), keepdim, ..Reduction::default() })
    }

    /// The sums along `axes`, stored in `dtype`.
    ///
    /// # Errors
    /// As [`sum_axes`](Self::sum_axes).
    pub fn sum_axes_in(&self, axes: &[isize], keepdim: bool, dtype: DType) -> Result<Self> {
        self.sum_by(Reduction {
            axes: Some(axes.to_vec()),
            keepdim,
            dtype: Some(dtype),
            ..Reduction::default()
        })
    }

    /// The sum of all elements, formed in `accumulate` and stored in `result`: two choices, as for a reduction whose terms
    /// travel in a narrow dtype.
    ///
    /// The elements are converted to `accumulate` first. Where that has 8 or 16 bits, each partial sum is rounded to it, so
    /// that small terms can be lost: `[256, 1, 1]` is 256 in `bf16`. [`sum_in`](Self::sum_in) loses nothing.
    ///
    /// # Errors
    /// [`Error::DType`](Error::DType) if `accumulate` is not floating-point.
    pub fn sum_accumulating_in(&self, accumulate: DType, result: DType) -> Result<Self> {
        self.sum_rounding(None, false, accumulate, result)
    }

    /// The sums along `axes`, formed in `accumulate` and stored in `result`.
    ///
    /// # Errors
    /// As [`sum_axes`](Self::sum_axes) and [`sum_accumulating_in`](Self::sum_accumulating_in).
    pub fn sum_axes_accumulating_in(
        &self,
        axes: &[isize],
        keepdim: bool,
        accumulate: DType,
        result: DType,
    ) -> Result<Self> {
        self.sum_rounding(Some(axes.to_vec()), keepdim, accumulate, result)
    }

    fn sum_rounding(
        &self,
        axes: Option<Vec<isize>>,
        keepdim: bool,
        accumulate: DType,
        result: DType,
    ) -> Result<Self> {
        if !accumulate.is_float() {
            let expected = "a floating-point dtype to form sums in".to_owned();
            return Err(Error::DType { operation: "sum_accumulating_in", expected, got: accumulate });
        }
        let reduction = Reduction { axes, keepdim, dtype: None, rounding: true };
        self.cast(accumulate)?.sum_by(reduction)?.cast(result)
    }
}

/// Mean over some axes; `shape` is the input's.
struct Mean {
    reduction: Reduction,
    shape: Shape,
}

impl Function<Cpu> for Mean {
    fn name(&self) -> &'static str {
        "Mean"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        let Reduction { keepdim, dtype, .. } = self.reduction;
        let mean = kernels::mean(inputs.get(0)?.array(), self.reduction.axes(), keepdim, dtype)?;
        Ok(DynTensor::from_array(mean).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        let kept = self.reduction.kept("mean", &self.shape)?;
        let count = self.shape.element_count() as f64 / kept.element_count() as f64;
        Ok(grad.div_scalar(count)?.reshape(kept)?.broadcast_to(self.shape.clone())?.into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    fn mean_by(&self, reduction: Reduction) -> Result<Self> {
        apply_one(Mean { reduction, shape: self.shape().clone() }, &[self])
    }

    /// The mean of all elements, of shape `[]`; of none it is NaN.
    ///
    /// # Dtypes
    /// That of the input, which must be floating. 8- and 16-bit floats are summed and divided in `f32` and rounded once.
    ///
    /// # Errors
    /// [`Error::DType`](Error::DType) of integers: choose a dtype with [`mean_in`](Self::mean_in).
    ///
    /// # Gradient
    /// `dx = G / n`, broadcast.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `mean`.
    pub fn mean(&self) -> Result<Self> {
        self.mean_by(Reduction::default())
    }

    /// The mean of all elements, formed and stored in a dtype at least as wide as `dtype`, without rounding in between.
    ///
    /// # Errors
    /// [`Error::DType`](Error::DType) if `dtype` is not floating.
    pub fn mean_in(&self, dtype: DType) -> Result<Self> {
        self.mean_by(Reduction { dtype: Some(dtype), ..Reduction::default() })
    }

    /// The means along `axes`, which stay with extent 1 if `keepdim`.
    ///
    /// # Errors
    /// As [`mean`](Self::mean), [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
    pub fn mean_axes(&self, axes: &[isize], keepdim: bool) -> Result<Self> {
        self.mean_by(Reduction { axes: Some(axes.to_vec()), keepdim, ..Reduction::default() })
    }

    /// The means along `axes`, stored in `dtype`.
    ///
    /// # Errors
    /// As [`mean_in`](Self::mean_in) and [`mean_axes`](Self::mean_axes).
    pub fn mean_axes_in(&self, axes: &[isize], keepdim: bool, dtype: DType) -> Result<Self> {
        self.mean_by(Reduction {
            axes: Some(axes.to_vec()),
            keepdim,
            dtype: Some(dtype),
            ..Reduction::default()
        })
    }
}

impl<D: Float, G: Over<D>> Tensor<D, G, Cpu> {
    /// The mean of all elements, of shape `[]`. See [`DynTensor::mean`].
    ///
    /// # Errors
    /// None at present.
    pub fn mean(&self) -> Result<Unary<D, G>> {
        self.as_dyn().mean().and_then(Tensor::settle)
    }

    /// The means along `axes`, which stay with extent 1 if `keepdim`. See [`DynTensor::mean_axes`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
    pub fn mean_axes(&self, axes: &[isize], keepdim: bool) -> Result<Unary<D, G>> {
        self.as_dyn().mean_axes(axes, keepdim).and_then(Tensor::settle)
    }

    /// The sum of all elements, of shape `[]`. See [`DynTensor::sum`].
    ///
    /// # Errors
    /// None at present.
    pub fn sum(&self) -> Result<Unary<D, G>> {
        self.as_dyn().sum().and_then(Tensor::settle)
    }

    /// The sums along `axes`, which stay with extent 1 if `keepdim`. See [`DynTensor::sum_axes`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
    pub fn sum_axes(&self, axes: &[isize], keepdim: bool) -> Result<Unary<D, G>> {
        self.as_dyn().sum_axes(axes, keepdim).and_then(Tensor::settle)
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
        self.as_dyn().sum_in(T::DTYPE).and_then(Tensor::settle)
    }

    /// The sums along `axes`, formed and stored in `T`. See [`DynTensor::sum_axes_in`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
    pub fn sum_axes_in<T: Element>(&self, axes: &[isize], keepdim: bool) -> Result<Tensor<T, G::Output, Cpu>>
    where
        G: CastOver<T>,
    {
        self.as_dyn().sum_axes_in(axes, keepdim, T::DTYPE).and_then(Tensor::settle)
    }

    /// The mean of all elements, formed and stored in `T`. See [`DynTensor::mean_in`].
    ///
    /// # Errors
    /// None at present.
    pub fn mean_in<T: Float>(&self) -> Result<Tensor<T, G::Output, Cpu>>
    where
        G: CastOver<T>,
    {
        self.as_dyn().mean_in(T::DTYPE).and_then(Tensor::settle)
    }

    /// The means along `axes`, formed and stored in `T`. See [`DynTensor::mean_axes_in`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
    pub fn mean_axes_in<T: Float>(&self, axes: &[isize], keepdim: bool) -> Result<Tensor<T, G::Output, Cpu>>
    where
        G: CastOver<T>,
    {
        self.as_dyn().mean_axes_in(axes, keepdim, T::DTYPE).and_then(Tensor::settle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f16s, f32s, f64s, gradient, values};
    use crate::dtype::DType;

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1, 0.3, -0.4], [2, 3]);
        let square = |x: crate::DynTensor| x.mul(&x);
        check_double(&[&x], |x| square(x[0].sum()?));
        check_double(&[&x], |x| square(x[0].sum_axes(&[1], false)?));
        check_double(&[&x], |x| square(x[0].mean()?));
        check_double(&[&x], |x| square(x[0].mean_axes(&[0], true)?));
        check_double(&[&x], |x| square(x[0].mean_axes(&[-1, 0], false)?));
    }

    #[test]
    fn a_chosen_dtype_keeps_a_tiny_gradient_from_vanishing() {
        let x = f16s(&[1.0, 2.0], [2]).requiring_grad_in(crate::GradDType::Exactly(DType::F32)).unwrap();
        for reduced in [x.sum_in(DType::F32), x.mean_in(DType::F32), x.sum_axes_in(&[0], false, DType::F32)] {
            x.zero_grad();
            reduced.unwrap().mul_scalar(1e-10).unwrap().backward().unwrap();
            assert!(values(&x.grad().unwrap()).iter().all(|&grad| grad > 4e-11));
        }
    }

    #[test]
    fn means_of_integers_need_a_dtype() {
        let x = super::super::testing::of(&[1_i32, 2], [2]);
        assert!(x.mean().is_err());
        assert_eq!(values(&x.mean_in(DType::F32).unwrap()), [1.5]);
        assert_eq!(gradient(&f32s(&[], [0]), crate::DynTensor::mean), [0.0; 0]);
    }
}
