//! The largest and the smallest element, over all or along axes, and where they are.

use super::reduce::Reduction;
use super::{Unary, apply_one, only, widened, without_gradient};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::Array;
use crate::cpu::kernels::{self, Extreme};
use crate::dtype::Element;
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};
use crate::ops::CmpOp;
use crate::shape::Shape;
use crate::typed::{Over, Tensor};

/// The extreme of all elements, or over axes: equal ones share the gradient.
struct Overall {
    which: Extreme,
    reduction: Reduction,
}

impl Function<Cpu> for Overall {
    fn name(&self) -> &'static str {
        if self.which == Extreme::Max { "Max" } else { "Min" }
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let input = inputs.get(0)?;
        ctx.carry_grad_dtype();
        let (axes, keepdim) = (self.reduction.axes(), self.reduction.keepdim);
        let output = DynTensor::from_array(kernels::extreme(input.array(), axes, keepdim, self.which)?);
        ctx.save_for_backward([input, &output]);
        Ok(output.into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let (input, output) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        let kept = self.reduction.kept("max", input.shape())?;
        let chosen = same(input.array(), &output.array().reshape(&kept)?)?;
        let ties = kernels::sum(&chosen, self.reduction.axes(), true, None)?;
        let (chosen, ties) = (DynTensor::from_array(chosen), DynTensor::from_array(ties));
        let (grad, _) = widened(&only(ctx, grads)?, input)?;
        let share = grad.reshape(kept)?.div(&ties)?;
        Ok(chosen.where_cond(&share, &DynTensor::scalar(0.0, share.dtype()))?.into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

/// Where both are equal, or both NaN.
fn same(lhs: &Array, rhs: &Array) -> Result<Array> {
    let is_nan = |array: &Array| kernels::compare(array, array, CmpOp::Ne);
    let both_nan = kernels::mul(&is_nan(lhs)?, &is_nan(rhs)?)?;
    kernels::add(&kernels::compare(lhs, rhs, CmpOp::Eq)?, &both_nan)
}

/// The extreme along one axis, and its position: the gradient goes to that position. `shape` is the input's.
struct Along {
    which: Extreme,
    axis: isize,
    keepdim: bool,
    shape: Shape,
}

impl Function<Cpu> for Along {
    fn name(&self) -> &'static str {
        if self.which == Extreme::Max { "Max" } else { "Min" }
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        ctx.carry_grad_dtype();
        let (values, positions) =
            kernels::extreme_along(inputs.get(0)?.array(), self.axis, self.keepdim, self.which)?;
        let positions = DynTensor::from_array(positions);
        ctx.mark_non_differentiable(&[1]);
        ctx.save_for_backward(&positions);
        Ok([DynTensor::from_array(values), positions].into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        if self.shape.is_empty() {
            return Ok(grad.into());
        }
        let positions = ctx.saved_tensor(0)?;
        let kept = self.shape.with_extent(self.shape.axis("max", self.axis)?, 1);
        let (grad, positions) = (grad.reshape(kept.clone())?, positions.reshape(kept)?);
        Ok(grad.scatter_add(self.shape.clone(), self.axis, &positions)?.into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    fn extreme(&self, which: Extreme, reduction: Reduction) -> Result<Self> {
        apply_one(Overall { which, reduction }, &[self])
    }

    fn extreme_along(&self, which: Extreme, axis: isize, keepdim: bool) -> Result<(Self, Self)> {
        let function = Along { which, axis, keepdim, shape: self.shape().clone() };
        let mut outputs = crate::function::apply(function, &[self])?.into_iter();
        match (outputs.next(), outputs.next()) {
            (Some(values), Some(positions)) => Ok((values, positions)),
            _ => Err(crate::Error::ValueCount {
                function: "Max".to_owned(),
                what: "outputs",
                expected: 2,
                got: 0,
            }),
        }
    }

    fn arg_extreme(&self, which: Extreme, axis: Option<isize>, keepdim: bool) -> Result<Self> {
        let name = if which == Extreme::Max { "ArgMax" } else { "ArgMin" };
        let positions = kernels::arg_extreme(self.array(), axis, keepdim, which)?;
        Ok(without_gradient(name, positions, &[self]))
    }
}

/// The methods for one end of the order, dynamic and typed.
macro_rules! extremes {
    ($($which:ident: $word:literal, $all:ident $axes:ident $along:ident $arg:ident;)*) => {$(
        impl DynTensor<Cpu> {
            #[doc = concat!("The ", $word, " of all elements, of shape `[]`; a NaN wins.")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if there is no element.
            ///
            /// # Gradient
            /// `G`, in equal parts to all elements that are equal to the result.
            ///
            /// # Source
            #[doc = concat!("PyTorch `derivatives.yaml`, `", stringify!($all), "`.")]
            pub fn $all(&self) -> Result<Self> {
                self.extreme(Extreme::$which, Reduction::default())
            }

            #[doc = concat!("The ", $word, " elements over `axes`, which stay with extent 1 if `keepdim`; a NaN wins.")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if an axis has extent 0,
            /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
            ///
            /// # Gradient
            /// `G`, in equal parts to all elements that are equal to the result.
            ///
            /// # Source
            #[doc = concat!("PyTorch `derivatives.yaml`, `a", stringify!($all), "`.")]
            pub fn $axes(&self, axes: &[isize], keepdim: bool) -> Result<Self> {
                self.extreme(Extreme::$which, Reduction { axes: Some(axes.to_vec()), keepdim, ..Reduction::default() })
            }

            #[doc = concat!("The ", $word, " elements along `axis`, and where they are: the first of equals, `i64`.")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if the axis has extent 0,
            /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange).
            ///
            /// # Gradient
            /// `G` to the element that was chosen. The positions have none.
            ///
            /// # Source
            #[doc = concat!("PyTorch `derivatives.yaml`, `", stringify!($all), ".dim`.")]
            pub fn $along(&self, axis: isize, keepdim: bool) -> Result<(Self, Self)> {
                self.extreme_along(Extreme::$which, axis, keepdim)
            }

            #[doc = concat!("Where along `axis` (`None`: in row-major order) the ", $word, " element is: the first of equals, `i64`.")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if there is no element to choose,
            /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange).
            pub fn $arg(&self, axis: impl Into<Option<isize>>, keepdim: bool) -> Result<Self> {
                self.arg_extreme(Extreme::$which, axis.into(), keepdim)
            }
        }

        impl<D: Element, G: Over<D>> Tensor<D, G, Cpu> {
            #[doc = concat!("The ", $word, " of all elements. See [`DynTensor::", stringify!($all), "`].")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if there is no element.
            pub fn $all(&self) -> Result<Unary<D, G>> {
                self.as_dyn().$all().and_then(Tensor::settle)
            }

            #[doc = concat!("The ", $word, " elements over `axes`. See [`DynTensor::", stringify!($axes), "`].")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if an axis has extent 0,
            /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange), or an axis given twice.
            pub fn $axes(&self, axes: &[isize], keepdim: bool) -> Result<Unary<D, G>> {
                self.as_dyn().$axes(axes, keepdim).and_then(Tensor::settle)
            }

            #[doc = concat!("The ", $word, " elements along `axis`, and where. See [`DynTensor::", stringify!($along), "`].")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if the axis has extent 0,
            /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange).
            pub fn $along(&self, axis: isize, keepdim: bool) -> Result<(Unary<D, G>, Tensor<i64>)> {
                let (values, positions) = self.as_dyn().$along(axis, keepdim)?;
                Ok((Tensor::settle(values)?, Tensor::wrap(positions)))
            }

            #[doc = concat!("Where the ", $word, " element is. See [`DynTensor::", stringify!($arg), "`].")]
            ///
            /// # Errors
            /// [`Error::Shape`](crate::Error::Shape) if there is no element to choose,
            /// [`Error::AxisOutOfRange`](crate::Error::AxisOutOfRange).
            pub fn $arg(&self, axis: impl Into<Option<isize>>, keepdim: bool) -> Result<Tensor<i64>> {
                self.as_dyn().$arg(axis, keepdim).and_then(Tensor::settle)
            }
        }
    )*};
}

extremes! {
    Max: "largest", max max_axes max_along argmax;
    Min: "smallest", min min_axes min_along argmin;
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f16s, f32s, f64s, gradient, values};

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1, 0.3, -0.4], [2, 3]);
        let square = |x: crate::DynTensor| x.mul(&x);
        check_double(&[&x], |x| square(x[0].max()?));
        check_double(&[&x], |x| square(x[0].min_axes(&[0], false)?));
        check_double(&[&x], |x| square(x[0].max_along(1, false)?.0));
        check_double(&[&x], |x| square(x[0].min_along(-2, true)?.0));
    }

    #[test]
    fn equal_elements_share_the_gradient_but_along_an_axis_one_takes_it() {
        let x = f32s(&[3.0, 1.0, 3.0, 3.0], [2, 2]);
        let third = f64::from(1.0_f32 / 3.0);
        assert_eq!(gradient(&x, crate::DynTensor::max), [third, 0.0, third, third]);
        assert_eq!(gradient(&x, |x| x.max_axes(&[1], false)), [1.0, 0.0, 0.5, 0.5]);
        assert_eq!(gradient(&x, |x| Ok(x.max_along(1, false)?.0)), [1.0, 0.0, 1.0, 0.0]);
        assert_eq!(gradient(&f32s(&[f32::NAN, 1.0], [2]), crate::DynTensor::max), [1.0, 0.0]);
        assert_eq!(gradient(&f16s(&[1.0], []), |x| Ok(x.min_along(0, true)?.0)), [1.0]);
    }

    #[test]
    fn positions_are_integers_without_a_gradient() {
        let x = f32s(&[1.0, 5.0, 2.0], [3]).requiring_grad().unwrap();
        let (_, positions) = x.max_along(0, false).unwrap();
        assert!(!positions.requires_grad() && !x.argmax(None, false).unwrap().requires_grad());
        assert_eq!(values(&x.argmax(0, true).unwrap()), [1.0]);
        assert_eq!(values(&x.argmin(None, false).unwrap()), [0.0]);
    }
}
