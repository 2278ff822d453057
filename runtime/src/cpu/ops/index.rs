//! Selection by index, and its adjoint: addition at an index. Indices are integers of any dtype and have no gradient.

use super::{Unary, apply_one, only, without_gradient};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::cpu::kernels;
use crate::dtype::{DType, Element};
use crate::engine::Cpu;
use crate::error::Result;
use crate::function::{Context, Function, Inputs};
use crate::shape::Shape;
use crate::typed::{Over, Tensor};

/// Implements [`Function`] for an operation on a tensor and an index, its two inputs.
macro_rules! index_function {
    ($type:ident, |$this:ident, $x:ident, $index:ident| $forward:expr,
     |$that:ident, $grad:ident, $saved:ident| $backward:expr) => {
        impl Function<Cpu> for $type {
            fn name(&self) -> &'static str {
                stringify!($type)
            }

            fn forward(&self, ctx: &mut Context<Cpu>, inputs: &Inputs<'_, Cpu>) -> Result<Outputs<Cpu>> {
                ctx.carry_grad_dtype();
                ctx.save_for_backward(inputs.get(1)?);
                let ($this, $x, $index) = (self, inputs.get(0)?.array(), inputs.get(1)?.array());
                Ok(DynTensor::from_array($forward?).into())
            }

            fn backward(&self, ctx: &Context<Cpu>, grads: Gradients<Cpu>) -> Result<Gradients<Cpu>> {
                let ($that, $grad, $saved) = (self, only(ctx, grads)?, ctx.saved_tensor(0)?);
                Ok([Some($backward?), None].into())
            }

            fn is_built_in(&self) -> bool {
                true
            }
        }
    };
}

/// `shape` is the input's.
struct Gather {
    axis: isize,
    shape: Shape,
}
index_function! {
    Gather, |this, x, index| kernels::gather_along(x, this.axis, index),
    |this, grad, index| grad.scatter_add(this.shape.clone(), this.axis, index)
}

/// `shape` is the result's.
struct ScatterAdd {
    axis: isize,
    shape: Shape,
}
index_function! {
    ScatterAdd, |this, x, index| kernels::scatter_add(&this.shape, this.axis, index, x),
    |this, grad, index| grad.gather(this.axis, index)
}

/// `extent` is the input's along `axis`.
struct IndexSelect {
    axis: isize,
    extent: usize,
}
index_function! {
    IndexSelect, |this, x, index| kernels::index_select(x, this.axis, index),
    |this, grad, index| grad.index_add(this.axis, index, this.extent)
}

struct IndexAdd {
    axis: isize,
    extent: usize,
}
index_function! {
    IndexAdd, |this, x, index| kernels::index_add(x, this.axis, index, this.extent),
    |this, grad, index| grad.index_select(this.axis, index)
}

impl DynTensor<Cpu> {
    /// Elements picked along `axis`: for axis 1 of three, `y[i][j][k] = x[i][index[i][j][k]][k]`.
    ///
    /// # Shapes
    /// The result's is the index's, which has as many axes as this tensor and is nowhere larger but along `axis`.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange), also of negative indices; [`Error::Shape`](crate::Error::Shape);
    /// [`Error::DType`](crate::Error::DType) if the index is not of integers.
    ///
    /// # Gradient
    /// `G`, added where each element was picked. 8- and 16-bit gradients are summed in `f32` and rounded once.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `gather`.
    pub fn gather(&self, axis: isize, index: &Self) -> Result<Self> {
        apply_one(Gather { axis, shape: self.shape().clone() }, &[self, index])
    }

    /// The adjoint of [`gather`](Self::gather): zeros of `shape`, to which each element is added where `index` says.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    ///
    /// # Gradient
    /// `dx = G` gathered by the same index.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `scatter_add`.
    pub fn scatter_add(&self, shape: impl Into<Shape>, axis: isize, index: &Self) -> Result<Self> {
        apply_one(ScatterAdd { axis, shape: shape.into() }, &[self, index])
    }

    /// The slices of `axis` that a vector of indices names, in its order.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    ///
    /// # Gradient
    /// `G`, each slice added where it was taken. 8- and 16-bit gradients are summed in `f32` and rounded once.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `index_select`.
    pub fn index_select(&self, axis: isize, index: &Self) -> Result<Self> {
        let position = self.shape().axis("index_select", axis)?;
        let extent = self.shape().get(position).copied().unwrap_or(0);
        apply_one(IndexSelect { axis, extent }, &[self, index])
    }

    /// The adjoint of [`index_select`](Self::index_select): zeros of extent `extent` along `axis`, to which slice `i` is
    /// added at position `index[i]`.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    ///
    /// # Gradient
    /// `dx = G` selected by the same index.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `index_add`.
    pub fn index_add(&self, axis: isize, index: &Self, extent: usize) -> Result<Self> {
        apply_one(IndexAdd { axis, extent }, &[self, index])
    }

    /// The rows of this table that the indices name.
    ///
    /// # Shapes
    /// A table `[n, d]` and indices of any shape `[…]` give `[…, d]`.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    ///
    /// # Gradient
    /// `G`, each row added where it was taken.
    ///
    /// # Source
    /// PyTorch `derivatives.yaml`, `embedding`.
    pub fn embedding(&self, index: &Self) -> Result<Self> {
        if self.shape().len() != 2 {
            let problem = format!("a table has two axes, got shape {}", self.shape());
            return Err(crate::Error::Shape { operation: "embedding", problem });
        }
        let flat = index.reshape(index.shape().element_count())?;
        let width = self.shape().last().copied();
        let shape: Shape = index.shape().iter().copied().chain(width).collect();
        self.index_select(0, &flat)?.reshape(shape)
    }

    /// One more axis of extent `classes`: 1 at the class that each element names, 0 elsewhere. Has no gradient.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) of a class that is not there,
    /// [`Error::DType`](crate::Error::DType) if this is not of integers.
    ///
    /// # Source
    /// PyTorch `torch.nn.functional.one_hot`, which gives an `int64`; here the dtype is chosen.
    pub fn one_hot(&self, classes: usize, dtype: DType) -> Result<Self> {
        Ok(without_gradient("OneHot", kernels::one_hot(self.array(), classes, dtype)?, &[self]))
    }
}

impl<D: Element, G: Over<D>> Tensor<D, G, Cpu> {
    /// Elements picked along `axis`. See [`DynTensor::gather`].
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange), [`Error::Shape`](crate::Error::Shape),
    /// [`Error::DType`](crate::Error::DType).
    pub fn gather<I: Element, H>(&self, axis: isize, index: &Tensor<I, H>) -> Result<Unary<D, G>> {
        self.as_dyn().gather(axis, index.as_dyn()).and_then(Tensor::settle)
    }

    /// Zeros to which each element is added where `index` says. See [`DynTensor::scatter_add`].
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn scatter_add<I: Element, H>(
        &self,
        shape: impl Into<Shape>,
        axis: isize,
        index: &Tensor<I, H>,
    ) -> Result<Unary<D, G>> {
        self.as_dyn().scatter_add(shape, axis, index.as_dyn()).and_then(Tensor::settle)
    }

    /// The slices of `axis` that a vector of indices names. See [`DynTensor::index_select`].
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn index_select<I: Element, H>(&self, axis: isize, index: &Tensor<I, H>) -> Result<Unary<D, G>> {
        self.as_dyn().index_select(axis, index.as_dyn()).and_then(Tensor::settle)
    }

    /// The adjoint of `index_select`. See [`DynTensor::index_add`].
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn index_add<I: Element, H>(
        &self,
        axis: isize,
        index: &Tensor<I, H>,
        extent: usize,
    ) -> Result<Unary<D, G>> {
        self.as_dyn().index_add(axis, index.as_dyn(), extent).and_then(Tensor::settle)
    }

    /// The rows of this table that the indices name. See [`DynTensor::embedding`].
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn embedding<I: Element, H>(&self, index: &Tensor<I, H>) -> Result<Unary<D, G>> {
        self.as_dyn().embedding(index.as_dyn()).and_then(Tensor::settle)
    }
}

impl<I: Element, H> Tensor<I, H, Cpu> {
    /// 1 at the class that each element names, 0 elsewhere, in `T`. See [`DynTensor::one_hot`].
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange), [`Error::DType`](crate::Error::DType).
    pub fn one_hot<T: Element>(&self, classes: usize) -> Result<Tensor<T>> {
        self.as_dyn().one_hot(classes, T::DTYPE).map(Tensor::wrap)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check_double, f16s, f64s, gradient, of, values};
    use super::*;

    #[test]
    fn gradients_agree_with_finite_differences_twice() {
        let x = f64s(&[0.5, -1.5, 2.0, 0.1, 0.3, -0.4], [2, 3]);
        let square = |x: DynTensor| x.mul(&x);
        let rows = of(&[1_i64, 0, 1], [3]);
        let picked = of(&[2_i32, 0, 1, 1], [2, 2]);
        check_double(&[&x], |x| square(x[0].index_select(0, &rows)?));
        check_double(&[&x], |x| square(x[0].gather(1, &picked)?));
        check_double(&[&x], |x| square(x[0].embedding(&picked.clamp(0.0, 1.0)?)?));
        check_double(&[&x], |x| square(x[0].narrow(1, 0, 2)?.scatter_add([2, 5], 1, &picked)?));
        check_double(&[&x], |x| square(x[0].index_add(0, &of(&[1_u8, 1], [2]), 3)?));
    }

    #[test]
    fn a_row_taken_often_gets_a_sum_that_is_rounded_once() {
        let index = of(&vec![0_i64; 4096], [4096]);
        assert_eq!(gradient(&f16s(&[1.0], [1]), |x| x.index_select(0, &index)), [4096.0]);
        assert_eq!(gradient(&f16s(&[1.0], [1]), |x| x.gather(0, &index)), [4096.0]);
    }

    #[test]
    fn embedding_adds_an_axis_and_one_hot_undoes_argmax() {
        let table = f64s(&[1.0, 2.0, 3.0, 4.0], [2, 2]);
        let looked_up = table.embedding(&of(&[1_i64, 0], [1, 2])).unwrap();
        assert_eq!((&looked_up.shape()[..], values(&looked_up)), (&[1, 2, 2][..], vec![3.0, 4.0, 1.0, 2.0]));
        assert!(table.embedding(&of(&[2_i64], [1])).is_err());
        let hot = of(&[2_i64, 0], [2]).one_hot(3, DType::F16).unwrap();
        assert_eq!(values(&hot.argmax(1, false).unwrap()), [2.0, 0.0]);
    }
}
