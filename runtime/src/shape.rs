//! Shapes: the extent of each dimension, and the arithmetic of broadcasting. No data.

use core::fmt;
use core::ops::Deref;

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// The extents of a tensor's dimensions, outermost first; `[]` is a scalar.
///
/// It dereferences to a slice. Build one from an array, a slice or a `Vec` of `usize`.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Clone for Shape {
    fn clone(&self) -> Self {
        // The derived one goes element by element.
        Self(SmallVec::from_slice(&self.0))
    }
}

impl Shape {
    /// The shape of a scalar, `[]`.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// How many elements it holds, or an error if that does not fit in `isize`.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`].
    pub fn checked_len(&self) -> Result<usize> {
        let overflow = || Error::ShapeOverflow { shape: self.clone() };
        // Zero extents must not hide an overflow of the others: strides are computed from them too.
        let nonzero = self.iter().filter(|&&extent| extent != 0);
        let product = nonzero.copied().try_fold(1_usize, usize::checked_mul).ok_or_else(overflow)?;
        // Eight bytes an element is the widest dtype; a buffer never exceeds `isize::MAX` bytes.
        if product > isize::MAX as usize / 8 {
            return Err(overflow());
        }
        Ok(if self.contains(&0) { 0 } else { product })
    }

    /// How many elements a shape holds that was checked when it was made.
    pub fn element_count(&self) -> usize {
        self.iter().product()
    }

    /// Whether it is a scalar or has one element in each dimension.
    pub fn is_single(&self) -> bool {
        self.iter().all(|&extent| extent == 1)
    }

    /// The shape that both broadcast to by NumPy's rules: aligned at the end, extents equal or one of them 1.
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        if self == other {
            return Some(self.clone());
        }
        let rank = self.len().max(other.len());
        let extent =
            |shape: &Self, axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
        (0..rank)
            .map(|axis| match (extent(self, axis), extent(other, axis)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect::<Option<SmallVec<_>>>()
            .map(Self)
    }

    /// Whether a tensor of this shape can be broadcast to `target`.
    pub fn broadcasts_to(&self, target: &Self) -> bool {
        self.broadcast(target).as_ref() == Some(target)
    }

    /// The axis that `axis` means, counted from the end if negative.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; a scalar takes axis 0 and −1, as in PyTorch.
    pub fn axis(&self, operation: &'static str, axis: isize) -> Result<usize> {
        let rank = self.len().max(1) as isize;
        let index = if axis < 0 { axis.checked_add(rank).unwrap_or(-1) } else { axis };
        if (0..rank).contains(&index) {
            Ok(index as usize)
        } else {
            Err(Error::AxisOutOfRange { operation, axis, shape: self.clone() })
        }
    }

    /// This shape with `axis` given another extent.
    pub fn with_extent(&self, axis: usize, extent: usize) -> Self {
        let mut shape = self.clone();
        if let Some(slot) = shape.0.get_mut(axis) {
            *slot = extent;
        }
        shape
    }

    /// This shape without `axis`.
    pub fn without_axis(&self, axis: usize) -> Self {
        self.iter().enumerate().filter(|&(i, _)| i != axis).map(|(_, &extent)| extent).collect()
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(extents: I) -> Self {
        Self(extents.into_iter().collect())
    }
}

impl From<&[usize]> for Shape {
    fn from(extents: &[usize]) -> Self {
        Self(SmallVec::from_slice(extents))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(extents: [usize; N]) -> Self {
        Self(SmallVec::from_slice(&extents))
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(extents: &[usize; N]) -> Self {
        Self(SmallVec::from_slice(extents))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(extents: Vec<usize>) -> Self {
        Self(SmallVec::from_vec(extents))
    }
}

impl From<&Self> for Shape {
    fn from(shape: &Self) -> Self {
        shape.clone()
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Self {
        Self::scalar()
    }
}

impl From<usize> for Shape {
    fn from(extent: usize) -> Self {
        Self::from([extent])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        let broadcast = |a: &[usize], b: &[usize]| Shape::from(a).broadcast(&Shape::from(b));
        assert_eq!(broadcast(&[2, 1, 4], &[3, 1]), Some(Shape::from([2, 3, 4])));
        assert_eq!(broadcast(&[], &[5]), Some(Shape::from([5])));
        assert_eq!(broadcast(&[0], &[1]), Some(Shape::from([0])));
        assert_eq!(broadcast(&[2], &[3]), None);
        assert!(!Shape::from([3]).broadcasts_to(&Shape::from([1])));
    }

    #[test]
    fn a_shape_too_large_to_address_is_an_error_also_beside_a_zero() {
        assert!(Shape::from([usize::MAX, 2]).checked_len().is_err());
        assert!(Shape::from([0, usize::MAX, usize::MAX]).checked_len().is_err());
        assert!(Shape::from([1 << 62]).checked_len().is_err());
        assert_eq!(Shape::from([3, 0]).checked_len().unwrap(), 0);
    }
}
