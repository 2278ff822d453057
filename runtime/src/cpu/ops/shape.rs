//! Other shapes over the same elements: no values change, and gradients go back the same way.
//!
//! Views do not copy, but for a `reshape` that the layout in memory does not allow.

use super::{Unary, apply_one, only, unary_method};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::Element;
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::function::{Context, Function, Inputs};
use crate::shape::Shape;
use crate::typed::{Over, Tensor};

/// Implements [`Function`] for a view: forward on the array, backward on the gradient.
macro_rules! view_function {
    ($type:ident, |$this:ident, $x:ident| $forward:expr, |$that:ident, $grad:ident| $backward:expr) => {
        impl Function<Cpu> for $type {
            fn name(&self) -> &'static str {
                stringify!($type)
            }

            fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
                ctx.carry_grad_dtype();
                let ($this, $x) = (self, inputs.get(0)?.array());
                Ok(DynTensor::from_array($forward?).into())
            }

            fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
                let ($that, $grad) = (self, only(ctx, grads)?);
                Ok($backward?.into())
            }

            fn is_built_in(&self) -> bool {
                true
            }
        }
    };
}

/// `from` is the input's shape.
struct Reshape {
    from: Shape,
    to: Shape,
}
view_function! { Reshape, |this, x| x.reshape(&this.to), |this, grad| grad.reshape(&this.from) }

struct Transpose(isize, isize);
view_function! { Transpose, |this, x| x.transpose(this.0, this.1), |this, grad| grad.transpose(this.0, this.1) }

struct Permute(Vec<isize>);
view_function! { Permute, |this, x| x.permute(&this.0), |this, grad| grad.permute(&inverse(&this.0)) }

/// The order that undoes a permutation.
fn inverse(axes: &[isize]) -> Vec<isize> {
    let rank = axes.len() as isize;
    (0..rank)
        .map(|axis| axes.iter().position(|&a| a.rem_euclid(rank) == axis).map_or(axis, |at| at as isize))
        .collect()
}

/// `extent` is that of the whole axis.
struct Narrow {
    axis: isize,
    start: usize,
    length: usize,
    extent: usize,
}
view_function! {
    Narrow, |this, x| x.narrow(this.axis, this.start, this.length),
    |this, grad| grad.pad(this.axis, this.start, this.extent - this.start - this.length)
}

/// Zeros before and behind, along an axis: the adjoint of [`Narrow`].
struct Pad {
    axis: isize,
    before: usize,
    after: usize,
    length: usize,
}
view_function! {
    Pad, |this, x| kernels::pad(x, this.axis, this.before, this.after),
    |this, grad| grad.narrow(this.axis, this.before, this.length)
}

unary_method! {
    /// Two axes swapped, counted from the end if negative. Without a copy.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    ///
    /// # Gradient
    /// `dx = Gᵀ`.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `transpose.int`.
    transpose[Element](first: isize, second: isize) => Transpose(first, second)
}

unary_method! {
    /// The axes in another order: axis `i` of the result is `axes[i]` of this tensor. Without a copy.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Argument`] if an axis is missing or named twice.
    ///
    /// # Gradient
    /// `G` with its axes put back.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `permute`.
    permute[Element](axes: &[isize]) => Permute(axes.to_vec())
}

impl DynTensor<Cpu> {
    /// The same elements in the same order under another shape. Copies only if the layout in memory demands it.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape holds another number of elements, [`Error::ShapeOverflow`].
    ///
    /// # Gradient
    /// `G` in the old shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `view`.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Self> {
        let to = shape.into();
        if *self.shape() == to {
            return Ok(self.clone());
        }
        apply_one(Reshape { from: self.shape().clone(), to }, &[self])
    }

    /// `length` positions of `axis`, from `start` on. Without a copy.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Shape`] of a scalar, [`Error::Argument`] if the positions do not all exist.
    ///
    /// # Gradient
    /// `G` between zeros.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `slice.Tensor`.
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<Self> {
        let index = self.shape().axis("narrow", axis)?;
        let extent = self.shape().get(index).copied().unwrap_or(0);
        apply_one(Narrow { axis, start, length, extent }, &[self])
    }

    /// Zeros put before and behind along `axis`.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Shape`] of a scalar, [`Error::ShapeOverflow`].
    ///
    /// # Gradient
    /// `G` without what was added.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `constant_pad_nd`.
    pub fn pad(&self, axis: isize, before: usize, after: usize) -> Result<Self> {
        let index = self.shape().axis("pad", axis)?;
        let length = self.shape().get(index).copied().unwrap_or(0);
        apply_one(Pad { axis, before, after, length }, &[self])
    }

    /// Without `axis`, if its extent is 1; otherwise unchanged.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    ///
    /// # Gradient
    /// `G` in the old shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `squeeze.dim`.
    pub fn squeeze(&self, axis: isize) -> Result<Self> {
        let axis = self.shape().axis("squeeze", axis)?;
        if self.shape().get(axis) == Some(&1) {
            self.reshape(self.shape().without_axis(axis))
        } else {
            Ok(self.clone())
        }
    }

    /// With a new axis of extent 1 before position `axis` (−1: behind the last).
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    ///
    /// # Gradient
    /// `G` in the old shape.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `unsqueeze`.
    pub fn unsqueeze(&self, axis: isize) -> Result<Self> {
        self.reshape(crate::cpu::views::unsqueezed(self.shape(), "unsqueeze", axis)?)
    }

    /// The axes from `first` to `last`, both included, as one.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Argument`] if `last` comes before `first`.
    ///
    /// # Gradient
    /// `G` in the old shape.
    ///
    /// # Source
    /// PyTorch `flatten`.
    pub fn flatten(&self, first: isize, last: isize) -> Result<Self> {
        let shape = self.shape();
        let (start, end) = (shape.axis("flatten", first)?, shape.axis("flatten", last)?);
        if end < start {
            let problem = format!("axis {last} comes before axis {first} of shape {shape}");
            return Err(Error::Argument { operation: "flatten", problem });
        }
        if shape.is_empty() {
            return self.reshape(1);
        }
        let flat = shape.iter().take(end + 1).skip(start).product();
        let outer = shape.iter().take(start).copied();
        self.reshape(outer.chain([flat]).chain(shape.iter().skip(end + 1).copied()).collect::<Shape>())
    }
}

/// The typed twins of methods whose function depends on the tensor's shape.
macro_rules! typed_twins {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*);)*) => {
        impl<D: Element, G: Over<D>> Tensor<D, G, Cpu> {
            $(
                $(#[$doc])*
                pub fn $name(&self, $($argument: $type),*) -> Result<Unary<D, G>> {
                    self.as_dyn().$name($($argument),*).and_then(Tensor::settle)
                }
            )*
        }
    };
}

typed_twins! {
    /// The same elements in the same order under another shape. See [`DynTensor::reshape`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape holds another number of elements, [`Error::ShapeOverflow`].
    reshape(shape: impl Into<Shape>);

    /// `length` positions of `axis`, from `start` on. See [`DynTensor::narrow`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Shape`] of a scalar, [`Error::Argument`] if the positions do not all exist.
    narrow(axis: isize, start: usize, length: usize);

    /// Zeros put before and behind along `axis`. See [`DynTensor::pad`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Shape`] of a scalar, [`Error::ShapeOverflow`].
    pad(axis: isize, before: usize, after: usize);

    /// Without `axis`, if its extent is 1. See [`DynTensor::squeeze`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    squeeze(axis: isize);

    /// With a new axis of extent 1 before position `axis`. See [`DynTensor::unsqueeze`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    unsqueeze(axis: isize);

    /// The axes from `first` to `last`, both included, as one. See [`DynTensor::flatten`].
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Argument`] if `last` comes before `first`.
    flatten(first: isize, last: isize);
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f64s, gradient, values};

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1, 0.3, -0.4], [2, 1, 3]);
        // Squared, so that there is a second derivative.
        let square = |x: &crate::DynTensor| x.mul(x);
        check_double(&[&x], |x| square(&x[0].reshape([3, 2])?));
        check_double(&[&x], |x| square(&x[0].transpose(0, -1)?));
        check_double(&[&x], |x| square(&x[0].permute(&[2, 0, -2])?));
        check_double(&[&x], |x| square(&x[0].narrow(2, 1, 2)?));
        check_double(&[&x], |x| square(&x[0].pad(0, 1, 2)?));
        check_double(&[&x], |x| square(&x[0].squeeze(1)?.unsqueeze(-1)?.flatten(0, 1)?));
        check_double(&[&x], |x| square(&x[0].broadcast_to([2, 4, 3])?));
        check_double(&[&x], |x| square(&x[0].sum_to_shape(&[1, 3].into())?));
    }

    #[test]
    fn a_narrowed_gradient_stands_between_zeros() {
        let x = f64s(&[1.0, 2.0, 3.0, 4.0], [4]);
        assert_eq!(gradient(&x, |x| x.narrow(0, 1, 2)), [0.0, 1.0, 1.0, 0.0]);
        assert_eq!(gradient(&x, |x| x.narrow(-1, 4, 0)), [0.0; 4]);
    }

    #[test]
    fn flattening_keeps_the_order_and_scalars_become_vectors() {
        let x = f64s(&[1.0, 2.0, 3.0, 4.0], [2, 1, 2]);
        assert_eq!(x.flatten(0, -1).unwrap().shape()[..], [4]);
        assert_eq!(values(&x.flatten(1, 2).unwrap()), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(f64s(&[1.0], []).flatten(0, 0).unwrap().shape()[..], [1]);
        assert!(x.flatten(2, 0).is_err());
    }
}
