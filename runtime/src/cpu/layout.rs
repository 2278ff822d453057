//! How the elements of an array lie in its buffer: extents, strides and an offset. No data.
//!
//! Strides count elements and are never negative. A broadcast dimension has stride 0.

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::shape::Shape;

/// The distance in elements between neighbours, for each dimension.
pub(crate) type Strides = SmallVec<[usize; 6]>;

/// Extents, strides and offset of an array.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    shape: Shape,
    offset: usize,
    /// `None`: row-major without gaps, which costs nothing to keep.
    strides: Option<Box<Strides>>,
}

impl Layout {
    /// Row-major from the start of the buffer; the shape's length was checked.
    pub(crate) const fn contiguous(shape: Shape) -> Self {
        Self { shape, offset: 0, strides: None }
    }

    fn with_strides(shape: Shape, offset: usize, strides: Strides) -> Self {
        let row_major = is_row_major(&shape, &strides);
        Self { shape, offset, strides: (!row_major).then(|| Box::new(strides)) }
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Where the first element is.
    pub(crate) const fn offset(&self) -> usize {
        self.offset
    }

    /// Whether the elements lie row-major without gaps, from [`Layout::offset`] on.
    pub(crate) const fn is_contiguous(&self) -> bool {
        self.strides.is_none()
    }

    /// Whether the elements fill a stretch of memory from [`Layout::offset`] on, each of it once, in whatever order.
    pub(crate) fn is_dense(&self) -> bool {
        let mut dims = self.collapsed();
        dims.sort_unstable_by_key(|&(_, stride)| stride);
        let mut end = 1;
        dims.iter().all(|&(extent, stride)| {
            let follows = stride == end;
            end *= extent;
            follows
        })
    }

    /// Of a dense layout: all elements in the order in which they lie.
    pub(crate) fn in_memory_order(&self) -> Self {
        Self { shape: Shape::from(self.shape.element_count()), offset: self.offset, strides: None }
    }

    /// The same order of elements from the start of another buffer on.
    pub(crate) fn at_start(&self) -> Self {
        Self { offset: 0, ..self.clone() }
    }

    pub(crate) fn strides(&self) -> Strides {
        self.strides.as_ref().map_or_else(|| row_major(&self.shape), |strides| (**strides).clone())
    }

    /// The dimensions in the order of `axes`, a permutation of `0..rank`.
    pub(crate) fn permute(&self, axes: &[usize]) -> Result<Self> {
        let rank = self.shape.len();
        let mut seen: SmallVec<[bool; 8]> = smallvec![false; rank];
        for &axis in axes {
            match seen.get_mut(axis) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(not_a_permutation(axes, &self.shape)),
            }
        }
        if axes.len() != rank {
            return Err(not_a_permutation(axes, &self.shape));
        }
        let strides = self.strides();
        let pick =
            |from: &[usize]| axes.iter().filter_map(|&axis| from.get(axis).copied()).collect::<Strides>();
        Ok(Self::with_strides(pick(&self.shape).into_iter().collect(), self.offset, pick(&strides)))
    }

    /// `length` positions of `axis` from `start` on; both were checked.
    pub(crate) fn narrow(&self, axis: usize, start: usize, length: usize) -> Self {
        let strides = self.strides();
        // Of an empty view no element is read, so its offset need not point anywhere.
        let step =
            if self.shape.contains(&0) || length == 0 { 0 } else { strides.get(axis).copied().unwrap_or(0) };
        Self::with_strides(self.shape.with_extent(axis, length), self.offset + start * step, strides)
    }

    /// Repeats along new and single dimensions, without copying.
    pub(crate) fn broadcast_to(&self, target: &Shape) -> Result<Self> {
        if !self.shape.broadcasts_to(target) {
            let problem = format!("shape {} does not broadcast to {target}", self.shape);
            return Err(Error::Shape { operation: "broadcast_to", problem });
        }
        target.checked_len()?;
        if self.shape == *target {
            return Ok(self.clone());
        }
        let added = target.len() - self.shape.len();
        let own = self.shape.iter().zip(self.strides()).zip(target.iter().skip(added));
        let repeated = own.map(|((&extent, stride), &wanted)| if extent == wanted { stride } else { 0 });
        let strides = core::iter::repeat_n(0, added).chain(repeated).collect();
        Ok(Self::with_strides(target.clone(), self.offset, strides))
    }

    /// The same elements in the same order under another shape of equal length, if that needs no copy.
    pub(crate) fn reshape(&self, target: &Shape) -> Option<Self> {
        if self.is_contiguous() {
            return Some(Self { shape: target.clone(), offset: self.offset, strides: None });
        }
        let runs = self.collapsed();
        let mut strides: Strides = smallvec![0; target.len()];
        // From the innermost out: each run is used up by a group of target dimensions.
        let mut runs = runs.into_iter().rev();
        let (mut left, mut stride) = runs.next().unwrap_or((1, 1));
        for (slot, &extent) in strides.iter_mut().zip(target.iter()).rev() {
            if extent == 1 {
                continue;
            }
            if left == 1 {
                (left, stride) = runs.next()?;
            }
            if extent == 0 || left % extent != 0 {
                return None;
            }
            *slot = stride;
            left /= extent;
            stride *= extent;
        }
        Some(Self::with_strides(target.clone(), self.offset, strides))
    }

    /// The fewest dimensions, as extent and stride, that visit the same elements in the same order.
    pub(crate) fn collapsed(&self) -> SmallVec<[(usize, usize); 6]> {
        let mut dims = SmallVec::<[(usize, usize); 6]>::new();
        for (&extent, stride) in self.shape.iter().zip(self.strides()) {
            if extent == 1 {
                continue;
            }
            match dims.last_mut() {
                Some(outer) if outer.1 == stride * extent => *outer = (outer.0 * extent, stride),
                _ => dims.push((extent, stride)),
            }
        }
        dims
    }
}

fn not_a_permutation(axes: &[usize], shape: &Shape) -> Error {
    let problem = format!("{axes:?} does not name each axis of shape {shape} once");
    Error::Argument { operation: "permute", problem }
}

fn row_major(shape: &Shape) -> Strides {
    let mut strides: Strides = smallvec![0; shape.len()];
    let mut step = 1;
    for (slot, &extent) in strides.iter_mut().zip(shape.iter()).rev() {
        *slot = step;
        step *= extent.max(1);
    }
    strides
}

fn is_row_major(shape: &Shape, strides: &Strides) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut step = 1;
    for (&extent, &stride) in shape.iter().zip(strides.iter()).rev() {
        if extent != 1 && stride != step {
            return false;
        }
        step *= extent;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(extents: &[usize]) -> Layout {
        Layout::contiguous(Shape::from(extents))
    }

    #[test]
    fn a_transposed_matrix_is_not_contiguous_and_transposed_again_it_is() {
        let transposed = layout(&[2, 3]).permute(&[1, 0]).unwrap();
        assert!(!transposed.is_contiguous());
        assert!(transposed.permute(&[1, 0]).unwrap().is_contiguous());
        assert!(layout(&[2, 3]).permute(&[1, 1]).is_err());
        assert!(layout(&[2, 3]).permute(&[0]).is_err());
        assert!(layout(&[2, 3]).permute(&[0, 2]).is_err());
    }

    #[test]
    fn whatever_the_order_a_stretch_of_memory_is_dense_if_each_element_is_there_once() {
        let swapped = layout(&[2, 3, 4]).permute(&[2, 0, 1]).unwrap();
        assert!(swapped.is_dense() && layout(&[2, 3]).is_dense() && layout(&[]).is_dense());
        assert!(!swapped.narrow(0, 1, 2).is_dense());
        assert!(!layout(&[1, 3]).broadcast_to(&Shape::from([2, 3])).unwrap().is_dense());
        assert!(layout(&[3, 4]).narrow(0, 1, 2).permute(&[1, 0]).unwrap().is_dense());
    }

    #[test]
    fn dimensions_that_follow_each_other_in_memory_collapse() {
        assert_eq!(layout(&[2, 3, 1, 4]).collapsed()[..], [(24, 1)]);
        let swapped = layout(&[2, 3, 4]).permute(&[2, 0, 1]).unwrap();
        assert_eq!(swapped.collapsed()[..], [(4, 1), (6, 4)]);
    }

    #[test]
    fn reshaping_a_view_needs_a_copy_only_where_the_order_in_memory_changes() {
        let swapped = layout(&[2, 3, 4]).permute(&[2, 0, 1]).unwrap();
        assert_eq!(swapped.reshape(&Shape::from([4, 6])).unwrap().strides()[..], [1, 4]);
        assert!(swapped.reshape(&Shape::from([24])).is_none());
        let rows = layout(&[1, 3]).broadcast_to(&Shape::from([2, 3])).unwrap();
        assert!(rows.reshape(&Shape::from([6])).is_none());
        assert!(rows.reshape(&Shape::from([2, 1, 3])).is_some());
        let ones = layout(&[]).broadcast_to(&Shape::from([2, 3])).unwrap();
        assert_eq!(ones.reshape(&Shape::from([6])).unwrap().strides()[..], [0]);
    }

    #[test]
    fn an_empty_layout_is_contiguous_and_narrowing_it_points_nowhere() {
        let empty = layout(&[2, 0, 3]);
        assert!(empty.permute(&[2, 1, 0]).unwrap().is_contiguous());
        assert_eq!(empty.narrow(0, 1, 1).offset(), 0);
        assert_eq!(layout(&[4]).narrow(0, 4, 0).offset(), 0);
    }
}
