//! Which elements of an array are reduced to one, whatever axes they lie along. Nothing is computed here.

use smallvec::SmallVec;

use crate::cpu::array::Array;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// A shape seen from one axis: how many positions lie outside it, along it and inside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) outer: usize,
    pub(crate) extent: usize,
    pub(crate) inner: usize,
}

impl Split {
    /// At `axis`; of a scalar, one position everywhere.
    pub(crate) fn at(shape: &Shape, axis: usize) -> Self {
        let (outer, rest) = shape.split_at(axis.min(shape.len()));
        let (extent, inner) = rest.split_first().map_or((1, rest), |(&extent, inner)| (extent, inner));
        Self { outer: outer.iter().product(), extent, inner: inner.iter().product() }
    }
}

/// What a reduction does to a shape.
pub(crate) struct Plan {
    /// A view of the array in which the reduced axes are neighbours.
    pub(super) view: Array,
    pub(super) split: Split,
    /// The result's shape.
    pub(super) shape: Shape,
}

impl Plan {
    /// Reduces `axes` (`None`: all); `keepdim` leaves them with extent 1.
    ///
    /// An empty list reduces nothing, as in NumPy.
    pub(crate) fn new(
        operation: &'static str,
        array: &Array,
        axes: Option<&[isize]>,
        keepdim: bool,
    ) -> Result<Self> {
        let shape = array.shape();
        let mut reduced: SmallVec<[bool; 6]> = SmallVec::from_elem(axes.is_none(), shape.len());
        for &axis in axes.unwrap_or_default() {
            let index = shape.axis(operation, axis)?;
            match reduced.get_mut(index) {
                Some(true) => {
                    let problem = format!("axis {axis} of shape {shape} is named twice");
                    return Err(Error::Argument { operation, problem });
                }
                Some(reduced) => *reduced = true,
                None => {} // Axis 0 of a scalar.
            }
        }
        Ok(Self::of_mask(array, &reduced, keepdim))
    }

    /// Reduces the marked axes.
    pub(super) fn of_mask(array: &Array, reduced: &[bool], keepdim: bool) -> Self {
        let shape = array.shape();
        let result = shape.iter().zip(reduced);
        let result = result.filter(|&(_, &reduced)| keepdim || !reduced);
        let result = result.map(|(&extent, &reduced)| if reduced { 1 } else { extent }).collect();
        // Axes of extent 1 can count as reduced or not, whatever makes the reduced ones neighbours.
        let matters = |axis: &usize| shape[*axis] != 1;
        let axes = || (0..shape.len()).filter(matters);
        let first = axes().find(|&axis| reduced[axis]);
        let last = axes().rfind(|&axis| reduced[axis]);
        let product = |axes: &mut dyn Iterator<Item = usize>| axes.map(|axis| shape[axis]).product::<usize>();
        let (Some(first), Some(last)) = (first, last) else {
            let split = Split { outer: shape.element_count(), extent: 1, inner: 1 };
            return Self { view: array.clone(), split, shape: result };
        };
        if axes().filter(|axis| (first..=last).contains(axis)).all(|axis| reduced[axis]) {
            let split = Split {
                outer: product(&mut (0..first)),
                extent: product(&mut (first..=last)),
                inner: product(&mut (last + 1..shape.len())),
            };
            return Self { view: array.clone(), split, shape: result };
        }
        let order: SmallVec<[usize; 6]> =
            axes().filter(|&axis| !reduced[axis]).chain(axes().filter(|&axis| reduced[axis])).collect();
        let split = Split {
            outer: product(&mut axes().filter(|&axis| !reduced[axis])),
            extent: product(&mut axes().filter(|&axis| reduced[axis])),
            inner: 1,
        };
        Self { view: array.reordered(&order), split, shape: result }
    }

    /// How many elements go into each element of the result.
    pub(crate) const fn count(&self) -> usize {
        self.split.extent
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }
}
