//! Splits large outputs into pieces of fixed size, on several threads if the feature `rayon` is on.
//!
//! The pieces do not depend on the number of threads, so neither do results that are formed piece by piece.

/// How many elements a piece has: enough work to be worth handing to another thread.
pub(crate) const PIECE: usize = 1 << 15;

/// From how many pieces on threads are asked to help: waking them takes as long as some pieces do.
#[cfg(feature = "rayon")]
const WORTHWHILE: usize = 4;

/// Calls `work` on each piece of `piece` elements of `out`, with the index of the piece's first element.
///
/// `work` is called through a pointer: a piece takes long enough, and the scheduling is compiled once for each type.
pub(crate) fn for_each_piece<T: Send>(out: &mut [T], piece: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let piece = piece.max(1);
    #[cfg(feature = "rayon")]
    if out.len() > (WORTHWHILE - 1) * piece {
        use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};
        out.par_chunks_mut(piece).enumerate().for_each(|(index, out)| work(index * piece, out));
        return;
    }
    for (index, out) in out.chunks_mut(piece).enumerate() {
        work(index * piece, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_in_one_piece() {
        let mut out = vec![0; 10];
        for_each_piece(&mut out, 3, &|start, out| {
            for (offset, slot) in out.iter_mut().enumerate() {
                *slot += start + offset;
            }
        });
        assert_eq!(out, (0..10).collect::<Vec<_>>());
        for_each_piece(&mut Vec::<i32>::new(), 0, &|_, _| panic!("there is nothing to do"));
    }
}
