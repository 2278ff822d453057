//! The three types that kernels compute in, and how results get into memory.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::census::census_of;
use super::convert::Convert;
use super::parallel::{PIECE, for_each_piece};
use super::read::gather;
use crate::cpu::array::Array;
use crate::cpu::buffer::{Buffer, Store, allocate, any_mut, free, with_store, with_type};
use crate::dtype::{Census, DType, Element};
use crate::error::Result;
use crate::observe;

/// How many elements are converted at a time; blocks of three operands fit in a first-level cache.
pub(crate) const BLOCK: usize = 1024;

/// Memory for converted blocks, one for each operand of a kernel; used only where something must be converted.
#[derive(Default)]
pub(crate) struct Scratch<C: Compute>(
    pub(crate) SmallVec<[C; 8]>,
    pub(crate) SmallVec<[C; 8]>,
    pub(crate) SmallVec<[C; 8]>,
);

/// Computes a block of a result: the index of its first element, the elements to fill, scratch memory.
pub(crate) type BlockFn<'a, C> = &'a (dyn Fn(usize, &mut [C], &mut Scratch<C>) + Sync);

/// `f32`, `f64` or `i64`: a type that kernels compute in.
pub(crate) trait Compute: Element + PartialOrd {
    /// The sum; of integers it wraps.
    fn plus(self, other: Self) -> Self;

    /// Neither less than nor equal to nor greater than itself.
    fn is_nan(self) -> bool;

    /// The first element of an array that has one.
    fn first(array: &Array) -> Self {
        let mut first = [Self::default()];
        Self::load(array.buffer(), array.layout().offset(), &mut first);
        first[0]
    }

    /// Converts elements of `buffer` from position `first` on.
    fn load(buffer: &Buffer, first: usize, out: &mut [Self]);

    /// Converts elements that lie in `dims`, from the `start`th on.
    fn gather(buffer: &Buffer, offset: usize, dims: &[(usize, usize)], start: usize, out: &mut [Self]);

    /// `len` elements of `dtype`, computed block by block and each rounded once.
    fn produce(dtype: DType, len: usize, block: BlockFn<'_, Self>) -> Result<Buffer>;

    /// Rounds computed values to `dtype`.
    fn store(dtype: DType, values: Vec<Self>) -> Result<Buffer>;

    /// What rounding made of values, `after` being what was stored as `to`; `None` if these are integers.
    fn classify(before: &[Self], after: &[Self], to: DType) -> Option<Census>;
}

/// Counts what becomes of results, if anybody observes and they are rounded to another floating dtype.
struct Counting(Option<Mutex<Census>>);

impl Counting {
    fn new<T: Element, C: Compute>() -> Self {
        let rounds = T::DTYPE != C::DTYPE && T::DTYPE.is_float() && C::DTYPE.is_float();
        Self((rounds && observe::is_active()).then(Mutex::default))
    }

    /// Counts a block that was stored.
    fn count<T: Convert<C>, C: Compute>(&self, computed: &[C], stored: &[T]) {
        let Some(total) = &self.0 else { return };
        let mut after = SmallVec::<[C; 8]>::from_elem(C::default(), stored.len());
        T::load(stored, &mut after);
        if let Some(census) = C::classify(computed, &after, T::DTYPE) {
            *total.lock().unwrap_or_else(PoisonError::into_inner) += census;
        }
    }

    /// Tells of what was lost.
    fn tell<T: Element, C: Compute>(self) {
        if let Some(total) = self.0 {
            observe::stored(C::DTYPE, T::DTYPE, total.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// `own += other`, element by element.
pub(crate) fn add_to<C: Compute>(own: &mut [C], other: &[C]) {
    for (own, &other) in own.iter_mut().zip(other) {
        *own = own.plus(other);
    }
}

macro_rules! compute {
    ($($type:ty: $plus:expr, $classify:expr;)*) => {$(
        impl Compute for $type {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }

            #[allow(clippy::eq_op, reason = "a NaN is what differs from itself; integers have none")]
            fn is_nan(self) -> bool {
                self != self
            }

            fn load(buffer: &Buffer, first: usize, out: &mut [Self]) {
                with_store!(buffer, store => Convert::load(&store.as_slice()[first..first + out.len()], out));
            }

            fn gather(buffer: &Buffer, offset: usize, dims: &[(usize, usize)], start: usize, out: &mut [Self]) {
                with_store!(buffer, store => {
                    gather(store.as_slice(), offset, dims, start, out, Convert::load, Convert::load_one);
                });
            }

            fn produce(dtype: DType, len: usize, block: BlockFn<'_, Self>) -> Result<Buffer> {
                with_type!(dtype, T => produce::<T, Self>(len, block))
            }

            fn classify(before: &[Self], after: &[Self], to: DType) -> Option<Census> {
                $classify(before, after, to)
            }

            fn store(dtype: DType, values: Vec<Self>) -> Result<Buffer> {
                if dtype == Self::DTYPE {
                    return Ok(Store::from_vec(values).into());
                }
                with_type!(dtype, T => {
                    let mut out = allocate::<T>(values.len())?;
                    let counting = Counting::new::<T, Self>();
                    for_each_piece(&mut out, PIECE, &|start, out| {
                        let values = &values[start..start + out.len()];
                        Convert::save(values, out);
                        counting.count(values, out);
                    });
                    counting.tell::<T, Self>();
                    free(values);
                    Ok(Store::from_vec(out).into())
                })
            }
        }
    )*};
}
compute! {
    f32: core::ops::Add::add, |before, after, to| Some(census_of(before, after, to));
    f64: core::ops::Add::add, |before, after, to| Some(census_of(before, after, to));
    i64: Self::wrapping_add, |_, _, _| None;
}

fn produce<T: Convert<C>, C: Compute>(len: usize, block: BlockFn<'_, C>) -> Result<Buffer> {
    let counting = Counting::new::<T, C>();
    if len == 1 {
        let mut single = [C::default()];
        block(0, &mut single, &mut Scratch::default());
        let stored = T::save_one(single[0]);
        counting.count(&single, &[stored]);
        counting.tell::<T, C>();
        return Ok(Store::One(stored).into());
    }
    let mut out = allocate::<T>(len)?;
    if let Some(out) = any_mut(&mut out).downcast_mut::<Vec<C>>() {
        for_each_piece(out, PIECE, &|first, piece| {
            let mut scratch = Scratch::default();
            for (index, out) in piece.chunks_mut(BLOCK).enumerate() {
                block(first + index * BLOCK, out, &mut scratch);
            }
        });
    } else {
        for_each_piece(&mut out, PIECE, &|first, piece| {
            let mut scratch = Scratch::default();
            let mut computed = SmallVec::<[C; 8]>::from_elem(C::default(), piece.len().min(BLOCK));
            for (index, out) in piece.chunks_mut(BLOCK).enumerate() {
                let computed = &mut computed[..out.len()];
                block(first + index * BLOCK, computed, &mut scratch);
                T::save(computed, out);
                counting.count(computed, out);
            }
        });
        counting.tell::<T, C>();
    }
    Ok(Store::from_vec(out).into())
}

/// Runs `$body` with `$type` naming the type that arrays of `$dtype` are computed in.
macro_rules! with_compute {
    ($dtype:expr, $type:ident => $body:expr) => {{
        match $dtype {
            $crate::dtype::DType::F64 => {
                type $type = f64;
                $body
            }
            dtype if dtype.is_float() => {
                type $type = f32;
                $body
            }
            _ => {
                type $type = i64;
                $body
            }
        }
    }};
}
pub(crate) use with_compute;
