//! Views of an array: other shapes over the same elements, without copying where memory allows.

use super::array::Array;
use crate::error::{Error, Result};
use crate::shape::Shape;

impl Array {
    /// The dimensions in another order: dimension `i` of the result is `axes[i]` of this array. Never copies.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Argument`] if an axis is missing or named twice.
    pub fn permute(&self, axes: &[isize]) -> Result<Self> {
        let axes = axes.iter().map(|&axis| self.shape().axis("permute", axis)).collect::<Result<Vec<_>>>()?;
        Ok(self.with_layout(self.layout().permute(&axes)?))
    }

    /// [`Array::permute`] to an order in which each axis that matters occurs once; others have extent 1 and may be left
    /// out.
    pub(crate) fn reordered(&self, axes: &[usize]) -> Self {
        let rest = (0..self.shape().len()).filter(|axis| !axes.contains(axis));
        let order: Vec<usize> = rest.chain(axes.iter().copied()).collect();
        self.layout().permute(&order).map_or_else(|_| self.clone(), |layout| self.with_layout(layout))
    }

    /// What `function` makes of each element by itself: where the elements lie together in another order than row-major, in that
    /// order, which the result then has as well.
    pub(crate) fn elementwise(&self, function: impl FnOnce(&Self) -> Result<Self>) -> Result<Self> {
        let layout = self.layout();
        if layout.is_contiguous() || !layout.is_dense() {
            return function(self);
        }
        Ok(function(&self.with_layout(layout.in_memory_order()))?.with_layout(layout.at_start()))
    }

    /// Two dimensions swapped. Never copies.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    pub fn transpose(&self, first: isize, second: isize) -> Result<Self> {
        let first = self.shape().axis("transpose", first)?;
        let second = self.shape().axis("transpose", second)?;
        if self.shape().is_empty() {
            return Ok(self.clone());
        }
        let mut axes: Vec<usize> = (0..self.shape().len()).collect();
        axes.swap(first, second);
        Ok(self.with_layout(self.layout().permute(&axes)?))
    }

    /// `length` positions of `axis`, from `start` on. Never copies.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`], [`Error::Shape`] of a scalar, [`Error::Argument`] if the positions do not all exist.
    pub fn narrow(&self, axis: isize, start: usize, length: usize) -> Result<Self> {
        let index = self.shape().axis("narrow", axis)?;
        let Some(&extent) = self.shape().get(index) else {
            return Err(Error::Shape {
                operation: "narrow",
                problem: "a scalar has no axis to narrow".to_owned(),
            });
        };
        if start.checked_add(length).is_none_or(|end| end > extent) {
            let shape = self.shape();
            let problem = format!("{length} positions from {start} on, of axis {axis} of shape {shape}");
            return Err(Error::Argument { operation: "narrow", problem });
        }
        Ok(self.with_layout(self.layout().narrow(index, start, length)))
    }

    /// Repeated along new outer dimensions and along dimensions of extent 1. Never copies.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not match by NumPy's rules, [`Error::ShapeOverflow`].
    pub fn broadcast_to(&self, shape: &Shape) -> Result<Self> {
        Ok(self.with_layout(self.layout().broadcast_to(shape)?))
    }

    /// The same elements in the same order under another shape. Copies only if the layout demands it.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape holds another number of elements, [`Error::ShapeOverflow`].
    pub fn reshape(&self, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        if shape.checked_len()? != self.element_count() {
            let problem =
                format!("shape {} cannot become {shape}: the number of elements differs", self.shape());
            return Err(Error::Shape { operation: "reshape", problem });
        }
        self.reshaped(&shape)
    }

    /// [`Array::reshape`] to a shape that is known to hold as many elements.
    pub(crate) fn reshaped(&self, shape: &Shape) -> Result<Self> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        match self.layout().reshape(shape) {
            Some(layout) => Ok(self.with_layout(layout)),
            None => Ok(Self::from_buffer(self.contiguous()?.buffer().clone(), shape.clone())),
        }
    }

    /// Without dimension `axis` if its extent is 1; otherwise unchanged, as in PyTorch.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    pub fn squeeze(&self, axis: isize) -> Result<Self> {
        let axis = self.shape().axis("squeeze", axis)?;
        if self.shape().get(axis) != Some(&1) {
            return Ok(self.clone());
        }
        self.reshaped(&self.shape().without_axis(axis))
    }

    /// With a new dimension of extent 1 before position `axis` (−1: after the last one).
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    pub fn unsqueeze(&self, axis: isize) -> Result<Self> {
        self.reshaped(&unsqueezed(self.shape(), "unsqueeze", axis)?)
    }
}

/// `shape` with a dimension of extent 1 before position `axis`.
pub(crate) fn unsqueezed(shape: &Shape, operation: &'static str, axis: isize) -> Result<Shape> {
    let rank = shape.len() as isize + 1;
    let index = if axis < 0 { axis.checked_add(rank).unwrap_or(-1) } else { axis };
    if !(0..rank).contains(&index) {
        return Err(Error::AxisOutOfRange { operation, axis, shape: shape.clone() });
    }
    let (outer, inner) = shape.split_at(index as usize);
    Ok(outer.iter().copied().chain([1]).chain(inner.iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn counting(shape: impl Into<Shape>) -> Array {
        let shape = shape.into();
        Array::from_vec((0..shape.element_count() as i64).collect(), shape).unwrap()
    }

    #[test]
    fn views_show_the_elements_that_numpy_would() {
        let array = counting([2, 3]);
        assert_eq!(array.transpose(0, -1).unwrap().to_vec::<i64>().unwrap(), [0, 3, 1, 4, 2, 5]);
        assert_eq!(array.narrow(1, 1, 2).unwrap().to_vec::<i64>().unwrap(), [1, 2, 4, 5]);
        assert_eq!(array.narrow(0, 1, 1).unwrap().to_vec::<i64>().unwrap(), [3, 4, 5]);
        let column = array.narrow(1, 2, 1).unwrap();
        assert_eq!(column.broadcast_to(&[2, 2].into()).unwrap().to_vec::<i64>().unwrap(), [2, 2, 5, 5]);
        assert_eq!(
            array.permute(&[-1, 0]).unwrap().reshape([6]).unwrap().to_vec::<i64>().unwrap(),
            [0, 3, 1, 4, 2, 5]
        );
        assert_eq!(
            array.narrow(0, 1, 1).unwrap().reshape([3, 1]).unwrap().to_vec::<i64>().unwrap(),
            [3, 4, 5]
        );
    }

    #[test]
    fn what_is_done_to_each_element_keeps_the_order_in_memory() {
        let turned = counting([4, 3]).narrow(0, 1, 3).unwrap().transpose(0, 1).unwrap();
        let cast = turned.cast(DType::F32).unwrap();
        assert_eq!(cast.layout().strides(), turned.layout().strides());
        assert_eq!(cast.to_f64_vec().unwrap(), [3.0, 6.0, 9.0, 4.0, 7.0, 10.0, 5.0, 8.0, 11.0]);
        let sparse = counting([4, 3]).transpose(0, 1).unwrap().narrow(0, 1, 2).unwrap();
        assert_eq!(
            sparse.cast(DType::F16).unwrap().to_f64_vec().unwrap(),
            [1.0, 4.0, 7.0, 10.0, 2.0, 5.0, 8.0, 11.0]
        );
    }

    #[test]
    fn dimensions_of_one_come_and_go() {
        let array = counting([2, 1, 3]);
        assert_eq!(array.squeeze(1).unwrap().shape()[..], [2, 3]);
        assert_eq!(array.squeeze(0).unwrap().shape()[..], [2, 1, 3]);
        assert_eq!(array.unsqueeze(-1).unwrap().shape()[..], [2, 1, 3, 1]);
        assert_eq!(Array::scalar(1.0_f32).unsqueeze(0).unwrap().shape()[..], [1]);
        assert!(Array::scalar(1.0_f32).unsqueeze(2).is_err());
        assert_eq!(Array::scalar(1.0_f32).squeeze(0).unwrap().shape()[..], [0; 0]);
    }

    #[test]
    fn impossible_views_are_errors() {
        let array = counting([2, 3]);
        assert!(array.narrow(1, 2, 2).is_err());
        assert!(array.narrow(1, usize::MAX, 2).is_err());
        assert!(array.narrow(2, 0, 1).is_err());
        assert!(Array::scalar(1_u8).narrow(0, 0, 1).is_err());
        assert!(array.reshape([5]).is_err());
        assert!(array.reshape([usize::MAX, 6]).is_err());
        assert!(array.broadcast_to(&[3, 2].into()).is_err());
        assert!(array.broadcast_to(&[1 << 62, 2, 3].into()).is_err());
        assert!(
            array.permute(&[0]).is_err()
                && array.permute(&[0, 0]).is_err()
                && array.permute(&[0, 5]).is_err()
        );
        assert!(Array::scalar(1_u8).transpose(0, 1).is_err());
    }

    #[test]
    fn empty_arrays_have_views_too() {
        let empty = Array::zeros([2, 0, 3], DType::F16).unwrap();
        assert_eq!(empty.permute(&[2, 0, 1]).unwrap().shape()[..], [3, 2, 0]);
        assert_eq!(empty.narrow(0, 2, 0).unwrap().to_f64_vec().unwrap(), [0.0; 0]);
        assert_eq!(empty.reshape([0]).unwrap().shape()[..], [0]);
        assert_eq!(counting([1]).broadcast_to(&[0].into()).unwrap().to_f64_vec().unwrap(), [0.0; 0]);
    }
}
