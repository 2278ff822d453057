//! Copies arrays whose last two dimensions are transposed in memory: in tiles, so that no line of the cache is read twice.

use super::parallel::{PIECE, for_each_piece};

/// Rows of the result that are written together: what their elements share of a line of the cache is then used at once.
const ROWS: usize = 32;

/// Columns of a tile. They lie far apart in memory, and more of them would displace each other from the cache.
const COLUMNS: usize = 8;

/// Extent and stride of each dimension, if the last but one has neighbours in memory and the last has not.
pub(super) struct Turned<'a> {
    outer: &'a [(usize, usize)],
    rows: usize,
    columns: usize,
    stride: usize,
}

impl<'a> Turned<'a> {
    pub(super) fn of(dims: &'a [(usize, usize)]) -> Option<Self> {
        match dims {
            [outer @ .., (rows, 1), (columns, stride)] if *stride > 1 => {
                Some(Self { outer, rows: *rows, columns: *columns, stride: *stride })
            }
            _ => None,
        }
    }

    /// Fills `out`, row-major, with the elements of `from`, the first of which is at `offset`.
    pub(super) fn copy<T: Copy + Send + Sync>(&self, from: &[T], offset: usize, out: &mut [T]) {
        let rows = ROWS.max(PIECE / self.columns);
        for_each_piece(out, rows * self.columns, &|start, mut out| {
            let mut first = start / self.columns;
            while !out.is_empty() {
                let (outer, row) = (first / self.rows, first % self.rows);
                let count = (self.rows - row).min(out.len() / self.columns);
                let (rows, rest) = out.split_at_mut(count * self.columns);
                self.copy_rows(&from[offset + self.position(outer) + row..], rows);
                out = rest;
                first += count;
            }
        });
    }

    /// Where the `nth` matrix begins.
    fn position(&self, nth: usize) -> usize {
        let (mut left, mut position) = (nth, 0);
        for &(extent, stride) in self.outer.iter().rev() {
            position += left % extent * stride;
            left /= extent;
        }
        position
    }

    fn copy_rows<T: Copy>(&self, from: &[T], out: &mut [T]) {
        for rows in out.chunks_mut(ROWS * self.columns).enumerate() {
            let (from, rows) = (&from[rows.0 * ROWS..], rows.1);
            for column in (0..self.columns).step_by(COLUMNS) {
                for (nth, row) in rows.chunks_mut(self.columns).enumerate() {
                    let end = self.columns.min(column + COLUMNS);
                    let elements = from[nth + column * self.stride..].iter().step_by(self.stride);
                    for (slot, &element) in row[column..end].iter_mut().zip(elements) {
                        *slot = element;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::Array;

    #[test]
    fn transposed_arrays_of_all_sizes_are_copied_in_their_order() {
        for [outer, rows, columns] in
            [[1, 2, 2], [1, 33, 7], [3, 40, 9], [2, 100, 65], [5, 3, 1000], [1, 300, 301], [2, 3, 40_000]]
        {
            let value = |outer: usize, row: usize, column: usize| (outer * columns + column) * rows + row;
            let array = Array::from_vec(
                (0..outer * columns * rows).map(|v| v as i64).collect(),
                [outer, columns, rows],
            );
            let turned = array.unwrap().permute(&[0, 2, 1]).unwrap().contiguous().unwrap();
            let expected = (0..outer * rows)
                .flat_map(|row| (0..columns).map(move |column| value(row / rows, row % rows, column) as i64));
            assert!(turned.layout().is_contiguous());
            assert!(turned.to_vec::<i64>().unwrap().into_iter().eq(expected), "{outer} {rows} {columns}");
        }
    }
}
