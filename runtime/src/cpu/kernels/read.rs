//! Reads an array of any dtype and layout block by block, in row-major order, as the type that is computed with.

use smallvec::SmallVec;

use super::compute::Compute;
use crate::cpu::array::Array;
use crate::dtype::Element;

/// Extents and strides, outermost first, with neighbours merged where memory allows.
pub(crate) type Dims = SmallVec<[(usize, usize); 6]>;

/// An array to be read block by block.
pub(crate) struct Reader<'a> {
    array: &'a Array,
    /// `None` for a contiguous array.
    dims: Option<Dims>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(array: &'a Array) -> Self {
        let layout = array.layout();
        Self { array, dims: (!layout.is_contiguous()).then(|| layout.collapsed()) }
    }

    /// `len` elements from the `start`th on: where they lie if nothing need be converted, else in `scratch`.
    pub(crate) fn block<'s, C: Compute>(
        &'s self,
        start: usize,
        len: usize,
        scratch: &'s mut SmallVec<[C; 8]>,
    ) -> &'s [C] {
        if let Some(elements) = self.elements(start, len) {
            return elements;
        }
        scratch.resize(len, C::default());
        self.read(start, scratch);
        scratch
    }

    /// `len` elements from the `start`th on, where they lie, if they are of type `T` and without gaps.
    pub(crate) fn elements<T: Element>(&self, start: usize, len: usize) -> Option<&[T]> {
        let first = self.array.layout().offset() + start;
        let elements = self.array.buffer().slice::<T>().filter(|_| self.dims.is_none())?;
        elements.get(first..first + len)
    }

    /// Fills `out` with the elements from the `start`th on.
    pub(crate) fn read<C: Compute>(&self, start: usize, out: &mut [C]) {
        let (buffer, offset) = (self.array.buffer(), self.array.layout().offset());
        match &self.dims {
            None => C::load(buffer, offset + start, out),
            Some(dims) => C::gather(buffer, offset, dims, start, out),
        }
    }
}

/// Fills `out` with elements from the `start`th on, in the order of `dims`.
///
/// `load` converts neighbours, `one` a single element.
pub(crate) fn gather<T: Copy, C: Copy>(
    from: &[T],
    offset: usize,
    dims: &[(usize, usize)],
    start: usize,
    mut out: &mut [C],
    load: impl Fn(&[T], &mut [C]),
    one: impl Fn(T) -> C,
) {
    let Some((&(extent, stride), outer)) = dims.split_last() else {
        out.fill(one(from[offset]));
        return;
    };
    let mut walk = Walk::new(offset, outer, start / extent.max(1));
    let mut inner = start % extent.max(1);
    while !out.is_empty() {
        let (run, rest) = out.split_at_mut((extent - inner).min(out.len()));
        let first = walk.position + inner * stride;
        match stride {
            0 => run.fill(one(from[first])),
            1 => load(&from[first..first + run.len()], run),
            _ => {
                for (slot, &element) in run.iter_mut().zip(from[first..].iter().step_by(stride)) {
                    *slot = one(element);
                }
            }
        }
        out = rest;
        inner = 0;
        walk.advance();
    }
}

/// A position in memory that moves through dimensions in row-major order.
struct Walk<'a> {
    dims: &'a [(usize, usize)],
    index: SmallVec<[usize; 6]>,
    position: usize,
}

impl<'a> Walk<'a> {
    fn new(offset: usize, dims: &'a [(usize, usize)], start: usize) -> Self {
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, dims.len());
        let (mut left, mut position) = (start, offset);
        for (slot, &(extent, stride)) in index.iter_mut().zip(dims).rev() {
            *slot = left % extent;
            left /= extent;
            position += *slot * stride;
        }
        Self { dims, index, position }
    }

    fn advance(&mut self) {
        for (slot, &(extent, stride)) in self.index.iter_mut().zip(self.dims).rev() {
            *slot += 1;
            self.position += stride;
            if *slot < extent {
                return;
            }
            self.position -= extent * stride;
            *slot = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    fn read_from(array: &Array, start: usize, len: usize) -> Vec<f32> {
        let mut scratch = SmallVec::new();
        Reader::new(array).block::<f32>(start, len, &mut scratch).to_vec()
    }

    #[test]
    fn blocks_of_a_transposed_array_come_in_row_major_order() {
        let array =
            Array::from_vec((0..6).map(|v| v as f32).collect(), [2, 3]).unwrap().permute(&[1, 0]).unwrap();
        assert_eq!(read_from(&array, 0, 6), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(read_from(&array, 3, 2), [4.0, 2.0]);
    }

    #[test]
    fn blocks_of_a_broadcast_array_repeat_its_elements() {
        let column =
            Array::from_vec(vec![1_i32, 2], [2, 1]).unwrap().broadcast_to(&Shape::from([2, 3])).unwrap();
        assert_eq!(read_from(&column, 1, 4), [1.0, 1.0, 2.0, 2.0]);
        let row = Array::from_vec(vec![1_u8, 2], [2]).unwrap().broadcast_to(&Shape::from([2, 2])).unwrap();
        assert_eq!(read_from(&row, 0, 4), [1.0, 2.0, 1.0, 2.0]);
        let single = Array::from_vec(vec![true], ()).unwrap().broadcast_to(&Shape::from([4])).unwrap();
        assert_eq!(read_from(&single, 1, 2), [1.0, 1.0]);
    }
}
