//! Comparisons, and what chooses between values: larger and smaller of two, limits, a condition.

use super::arithmetic::both;
use super::{
    Binary, Broadcast, apply_one, binary_method, broadcast_of, only, unary_function, unary_method,
    without_gradient,
};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::Element;
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};
use crate::ops::CmpOp;
use crate::shape::Shape;
use crate::typed::{Join, Over, Tensor};

macro_rules! comparisons {
    ($($name:ident $variant:ident $sign:literal;)*) => {
        impl DynTensor<Cpu> {
            $(
                #[doc = concat!("`self ", $sign, " rhs`, element by element, as `bool`.")]
                ///
                /// # Shapes
                /// Both broadcast by NumPy's rules.
                ///
                /// # Dtypes
                /// Both are promoted before they are compared. The result has no gradient.
                ///
                /// # Errors
                /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
                pub fn $name(&self, rhs: &Self) -> Result<Self> {
                    let result = kernels::compare(self.array(), rhs.array(), CmpOp::$variant)?;
                    Ok(without_gradient(stringify!($variant), result, &[self, rhs]))
                }
            )*
        }

        impl<D: Element, G> Tensor<D, G> {
            $(
                #[doc = concat!("`self ", $sign, " rhs`, element by element, as `bool`.")]
                ///
                /// # Shapes
                /// Both broadcast by NumPy's rules.
                ///
                /// # Dtypes
                /// The result has no gradient; its type repeats `G`, so that a cast of it fits beside this tensor.
                ///
                /// # Errors
                /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
                pub fn $name<H>(&self, rhs: &Tensor<D, H>) -> Result<Tensor<bool, G>> {
                    self.as_dyn().$name(rhs.as_dyn()).map(Tensor::wrap)
                }
            )*
        }
    };
}

comparisons! {
    eq Eq "="; ne Ne "≠"; lt Lt "<"; le Le "≤"; gt Gt ">"; ge Ge "≥";
}

/// The larger or the smaller of two.
struct Extremum {
    larger: bool,
    broadcast: Broadcast,
}

impl Function<Cpu> for Extremum {
    fn name(&self) -> &'static str {
        if self.larger { "Maximum" } else { "Minimum" }
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (lhs, rhs) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([lhs, rhs]);
        let kernel = if self.larger { kernels::maximum } else { kernels::minimum };
        Ok(DynTensor::from_array(kernel(lhs.array(), rhs.array())?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let grad = only(ctx, grads)?;
        let grad = grad.cast(grad.dtype().accumulation())?;
        let (lhs, rhs) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        // Equal operands get half each; one that is passed over gets nothing, and the chosen one all, a NaN included.
        let shared = lhs.eq(rhs)?.where_cond(&grad.mul_scalar(0.5)?, &grad)?;
        let zero = DynTensor::scalar(0.0, grad.dtype());
        let passed_over =
            |own: &DynTensor<Cpu>, other| if self.larger { own.lt(other) } else { own.gt(other) };
        let part = |own, other| passed_over(own, other)?.where_cond(&zero, &shared);
        both(ctx, &self.broadcast, || part(lhs, rhs), || part(rhs, lhs))
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

binary_method! {
    /// The larger of both, element by element; a NaN wins.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// Of dynamic tensors promoted.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
    ///
    /// # Gradient
    /// `G` for the larger, 0 for the other; half each where they are equal.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `maximum`.
    maximum[Element] => |lhs, rhs| Extremum { larger: true, broadcast: broadcast_of(lhs, rhs) }
}

binary_method! {
    /// The smaller of both, element by element; a NaN wins.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// Of dynamic tensors promoted.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
    ///
    /// # Gradient
    /// `G` for the smaller, 0 for the other; half each where they are equal.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `minimum`.
    minimum[Element] => |lhs, rhs| Extremum { larger: false, broadcast: broadcast_of(lhs, rhs) }
}

/// Limits from below and above.
struct Clamp {
    min: Option<f64>,
    max: Option<f64>,
}

unary_function! {
    Clamp saves input, |this, x| kernels::clamp(x, this.min, this.max),
    |this, grad, x| {
        let zero = DynTensor::scalar(0.0, grad.dtype());
        let bound = |value| DynTensor::scalar(value, x.dtype());
        let grad = match this.min {
            Some(min) => x.ge(&bound(min))?.where_cond(&grad, &zero)?,
            None => grad,
        };
        match this.max {
            Some(max) => x.le(&bound(max))?.where_cond(&grad, &zero),
            None => Ok(grad),
        }
    }
}

unary_method! {
    /// The values limited to what lies between the bounds; a NaN stays.
    ///
    /// If the lower bound is above the upper one, everything becomes the upper.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if the tensor is of integers and a bound is none.
    ///
    /// # Gradient
    /// `dx = G` between the bounds, on them included, else 0.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `clamp`.
    clamp[Element](min: impl Into<Option<f64>>, max: impl Into<Option<f64>>) => Clamp { min: min.into(), max: max.into() }
}

/// One of two by a condition, which is input 0; the shapes are those of the two.
struct Where {
    shapes: [Shape; 2],
}

impl Function<Cpu> for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
        let (condition, lhs, rhs) = (inputs.get(0)?, inputs.get(1)?, inputs.get(2)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward(condition);
        Ok(DynTensor::from_array(kernels::choose(condition.array(), lhs.array(), rhs.array())?).into())
    }

    fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
        let (grad, condition) = (only(ctx, grads)?, ctx.saved_tensor(0)?);
        let zero = DynTensor::scalar(0.0, grad.dtype());
        let lhs = ctx.grad_if_needed(1, || {
            condition.where_cond(&grad, &zero)?.sum_to_shape(&self.shapes[0]).map(Some)
        })?;
        let rhs = ctx.grad_if_needed(2, || {
            condition.where_cond(&zero, &grad)?.sum_to_shape(&self.shapes[1]).map(Some)
        })?;
        Ok([None, lhs, rhs].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

impl DynTensor<Cpu> {
    /// Where this tensor of `bool` holds, elements of `on_true`, elsewhere of `on_false`.
    ///
    /// # Shapes
    /// All three broadcast by NumPy's rules.
    ///
    /// # Dtypes
    /// The values' dtypes are promoted.
    ///
    /// # Errors
    /// [`Error::DType`](crate::Error::DType) if this is not of `bool`, [`Error::Shape`](crate::Error::Shape).
    ///
    /// # Gradient
    /// `G` for the tensor that was chosen from, 0 for the other, each summed to its shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `where`.
    pub fn where_cond(&self, on_true: &Self, on_false: &Self) -> Result<Self> {
        let shapes = [on_true.shape().clone(), on_false.shape().clone()];
        apply_one(Where { shapes }, &[self, on_true, on_false])
    }
}

impl<C> Tensor<bool, C> {
    /// Where this tensor holds, elements of `on_true`, elsewhere of `on_false`. See [`DynTensor::where_cond`].
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shapes do not broadcast.
    pub fn where_cond<D: Element, G, H>(
        &self,
        on_true: &Tensor<D, G>,
        on_false: &Tensor<D, H>,
    ) -> Result<Binary<D, G, H>>
    where
        G: Join<H>,
        G::Output: Over<D>,
    {
        self.as_dyn().where_cond(on_true.as_dyn(), on_false.as_dyn()).and_then(Tensor::settle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, check_double, f32s, f64s, gradient, of, values};
    use crate::dtype::DType;

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (a, b) = (f64s(&[0.5, -1.5, 2.0, 0.1], [2, 2]), f64s(&[0.7, -2.0], [2]));
        check_double(&[&a, &b], |x| x[0].maximum(x[1])?.mul(x[0]));
        check_double(&[&a, &b], |x| x[0].minimum(x[1])?.mul(x[1]));
        check(&[&a], |x| x[0].clamp(-1.0, 1.0));
        check(&[&a], |x| x[0].clamp(None, 1.0));
        let mask = of(&[true, false], [2, 1]);
        check_double(&[&a, &b], |x| mask.where_cond(&x[0].mul(x[0])?, x[1]));
    }

    #[test]
    fn equal_operands_share_the_gradient_and_bounds_pass_it() {
        let other = f32s(&[1.0, 2.0, f32::NAN], [3]);
        assert_eq!(gradient(&f32s(&[1.0, 1.0, 1.0], [3]), |x| x.maximum(&other)), [0.5, 0.0, 1.0]);
        assert_eq!(gradient(&f32s(&[1.0, 1.0, 3.0], [3]), |x| x.minimum(&other)), [0.5, 1.0, 1.0]);
        let x = f32s(&[-1.0, -1.5, 1.0, f32::NAN], [4]);
        assert_eq!(gradient(&x, |x| x.clamp(-1.0, 1.0)), [1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn a_comparison_cuts_the_graph_and_says_so() {
        let x = f32s(&[1.0], [1]).requiring_grad().unwrap();
        let mask = x.gt(&f32s(&[0.0], [1])).unwrap();
        assert_eq!((mask.dtype(), values(&mask)), (DType::Bool, vec![1.0]));
        let error = mask.cast(DType::F32).unwrap().sum().unwrap().backward().unwrap_err().to_string();
        assert!(error.contains("`Gt`"), "{error}");
    }

    #[test]
    fn conditions_are_bool() {
        let x = f32s(&[1.0], [1]);
        assert!(x.where_cond(&x, &x).is_err());
    }
}
