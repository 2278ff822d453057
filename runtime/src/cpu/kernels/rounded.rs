//! Sums of arrays that are rounded to some dtype before they are added, in one pass over memory: what several gradients at an
//! edge are. The results are those of `cast` and `accumulate`, one after the other.

use smallvec::SmallVec;

use super::compute::{BLOCK, Compute, Scratch};
use super::convert::Convert;
use super::fused::{self, SumFn};
use super::narrow::{self, Add, Put, Set};
use super::parallel::{PIECE, for_each_piece};
use super::read::Reader;
use super::{accumulate, cast};
use crate::cpu::array::Array;
use crate::cpu::buffer::{Buffer, Store, allocate, with_type};
use crate::dtype::{DType, Element, bf16, f16};
use crate::error::Result;

/// The sum of arrays of one shape, from left to right, each rounded to `rounded`: formed in the accumulation dtype of that, and
/// rounded to `dtype`. All are floating-point.
pub(crate) fn sum_rounded(first: &Array, others: &[&Array], rounded: DType, dtype: DType) -> Result<Array> {
    if rounded == dtype
        && let Some(sum) = match *others {
            [second] => fused_sum([first, second], dtype)?,
            [second, third] => fused_sum([first, second, third], dtype)?,
            _ => None,
        }
    {
        return Ok(sum);
    }
    let first = Rounded::new(first, rounded);
    let others: SmallVec<[_; 3]> = others.iter().map(|array| Rounded::new(array, rounded)).collect();
    match rounded {
        DType::F64 => sum::<f64>(&first, &others, dtype),
        _ => sum::<f32>(&first, &others, dtype),
    }
}

/// The sum of arrays in `dtype`, to which each is rounded first, if there is a kernel for just that.
fn fused_sum<const N: usize>(arrays: [&Array; N], dtype: DType) -> Result<Option<Array>> {
    use DType::{BF16, F16, F32, F64};
    match (arrays[0].dtype(), dtype) {
        (F32, F16) => sum_by(fused::of_f32_to_f16(), arrays),
        (F16, F16) => sum_by(fused::of_f16(), arrays),
        (F16, F32) => sum_by(fused::of_f16_to_f32(), arrays),
        (F32, BF16) => sum_by(Some(fused::plain::<f32, bf16, N>), arrays),
        (BF16, BF16) => sum_by(Some(fused::plain::<bf16, bf16, N>), arrays),
        (BF16, F32) => sum_by(Some(fused::plain::<bf16, f32, N>), arrays),
        (F64, F32) => sum_by(Some(fused::plain::<f64, f32, N>), arrays),
        _ => Ok(None),
    }
}

/// What `kernel` makes of arrays, if the elements of all are of its type and lie row-major without gaps.
fn sum_by<S: Element, T: Element, const N: usize>(
    kernel: Option<SumFn<S, T, N>>,
    arrays: [&Array; N],
) -> Result<Option<Array>> {
    let (readers, len) = (arrays.map(Reader::new), arrays[0].element_count());
    let elements = readers.each_ref().map(|reader| reader.elements::<S>(0, len));
    let Some(kernel) = kernel.filter(|_| elements.iter().all(Option::is_some)) else { return Ok(None) };
    let elements = elements.map(Option::unwrap_or_default);
    let mut out = allocate::<T>(len)?;
    for_each_piece(&mut out, PIECE, &|start, out| {
        kernel(elements.map(|elements| &elements[start..start + out.len()]), out);
    });
    Ok(Some(Array::from_buffer(Store::from_vec(out).into(), arrays[0].shape().clone())))
}

fn sum<C: Wide>(first: &Rounded<'_>, others: &[Rounded<'_>], dtype: DType) -> Result<Array> {
    let shape = first.array.shape();
    let buffer =
        C::produce(dtype, shape.element_count(), &|start, out: &mut [C], scratch: &mut Scratch<C>| {
            C::put::<Set>(first, start, out, &mut scratch.0);
            others.iter().for_each(|other| C::put::<Add>(other, start, out, &mut scratch.0));
        })?;
    Ok(Array::from_buffer(buffer, shape.clone()))
}

/// `array` plus `other`, of the same shape, rounded to `rounded`, whose accumulation dtype `array` has. In place if nobody else
/// holds the elements of `array`. All are floating-point.
pub(crate) fn accumulate_rounded(mut array: Array, other: &Array, rounded: DType) -> Result<Array> {
    let dtype = array.dtype();
    if dtype != rounded.accumulation() {
        return accumulate(array, &cast(other, rounded)?);
    }
    if other.dtype() == dtype && rounded == dtype {
        return accumulate(array, other);
    }
    let source = Rounded::new(other, rounded);
    let (layout, len) = (array.layout(), array.element_count());
    let (offset, contiguous) = (layout.offset(), layout.is_contiguous());
    if contiguous
        && let Some(buffer) = array.buffer_mut()
        && match dtype {
            DType::F64 => add_in_place::<f64>(buffer, offset, len, &source),
            _ => add_in_place::<f32>(buffer, offset, len, &source),
        }
    {
        return Ok(array);
    }
    let own = Rounded::new(&array, dtype);
    match dtype {
        DType::F64 => sum::<f64>(&own, &[source], dtype),
        _ => sum::<f32>(&own, &[source], dtype),
    }
}

/// Adds to `len` elements from `offset` on, unless they are shared; says whether it did.
fn add_in_place<C: Wide>(buffer: &mut Buffer, offset: usize, len: usize, other: &Rounded<'_>) -> bool {
    let Some(elements) = buffer.unique::<C>() else { return false };
    for_each_piece(&mut elements[offset..offset + len], PIECE, &|first, piece| {
        let mut scratch = SmallVec::new();
        for (index, own) in piece.chunks_mut(BLOCK).enumerate() {
            C::put::<Add>(other, first + index * BLOCK, own, &mut scratch);
        }
    });
    true
}

/// How many elements are converted at a time where that takes more memory than a block has.
const STEP: usize = 256;

/// An array whose elements are to be rounded when they are read.
struct Rounded<'a> {
    array: &'a Array,
    reader: Reader<'a>,
    /// To this dtype.
    rounded: DType,
}

impl<'a> Rounded<'a> {
    fn new(array: &'a Array, rounded: DType) -> Self {
        Self { array, reader: Reader::new(array), rounded }
    }

    /// Puts elements in their place that are computed as an `S` and rounded, in memory of its own, to a `T`.
    fn put_through<S: Compute, T: Convert<S> + Convert<f32>, P: Put>(&self, start: usize, out: &mut [f32]) {
        let (mut exact, mut rounded, mut wide) = ([S::default(); STEP], [T::default(); STEP], [0.0; STEP]);
        for (index, out) in out.chunks_mut(STEP).enumerate() {
            let (exact, rounded) = (&mut exact[..out.len()], &mut rounded[..out.len()]);
            let wide = &mut wide[..out.len()];
            self.reader.read(start + index * STEP, exact);
            T::save(exact, rounded);
            T::load(rounded, wide);
            narrow::put::<f32, P>(wide, out);
        }
    }
}

/// `f32` or `f64`: a type in which sums are formed.
trait Wide: Compute {
    /// Sets `out` to the rounded elements from the `start`th on, or adds them.
    fn put<P: Put>(source: &Rounded<'_>, start: usize, out: &mut [Self], scratch: &mut SmallVec<[Self; 8]>);
}

impl Wide for f32 {
    fn put<P: Put>(source: &Rounded<'_>, start: usize, out: &mut [Self], scratch: &mut SmallVec<[Self; 8]>) {
        let (reader, len) = (&source.reader, out.len());
        match (source.array.dtype(), source.rounded) {
            (from, to) if from == to || to == DType::F32 => {
                if let Some(elements) = reader.elements::<f16>(start, len) {
                    narrow::put_f16::<P>(elements, out);
                } else if let Some(elements) = reader.elements::<bf16>(start, len) {
                    narrow::put::<_, P>(elements, out);
                } else {
                    narrow::put::<_, P>(reader.block::<Self>(start, len, scratch), out);
                }
            }
            (DType::F64, to) => with_type!(to, T => source.put_through::<f64, T, P>(start, out)),
            (_, DType::F16) => narrow::round_f16::<P>(reader.block(start, len, scratch), out),
            (_, DType::BF16) => narrow::round_bf16::<P>(reader.block(start, len, scratch), out),
            (_, to) => with_type!(to, T => source.put_through::<Self, T, P>(start, out)),
        }
    }
}

/// Where nothing is rounded, since an `f64` holds every other float.
impl Wide for f64 {
    fn put<P: Put>(source: &Rounded<'_>, start: usize, out: &mut [Self], scratch: &mut SmallVec<[Self; 8]>) {
        if source.array.dtype() == DType::F64 {
            let elements = source.reader.block(start, out.len(), scratch);
            out.iter_mut().zip(elements).for_each(|(out, &element)| *out = P::of(*out, element));
            return;
        }
        let mut single = [0.0_f32; STEP];
        for (index, out) in out.chunks_mut(STEP).enumerate() {
            let single = &mut single[..out.len()];
            source.reader.read(start + index * STEP, single);
            out.iter_mut().zip(single).for_each(|(out, element)| *out = P::of(*out, (*element).into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    /// Numbers of all sizes, ties of small formats among them, and what is no number.
    fn numbers(len: usize, seed: usize) -> Array {
        let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 65520.0, 1e-7, 464.0, 1e300];
        let number = |nth: usize| {
            let mixed = (nth + 1).wrapping_mul(seed + 7919).wrapping_mul(0x9e37_79b9) % 100_003;
            match special.get(mixed % 50) {
                Some(&special) => special,
                None => {
                    (mixed as f64 / 50_000.0 - 1.0).mul_add(1.0, 2.0_f64.powi(-12))
                        * 2.0_f64.powi((mixed % 37) as i32 - 20)
                }
            }
        };
        Array::from_vec((0..len).map(number).collect(), [len]).unwrap()
    }

    fn bits(array: &Array) -> Vec<u64> {
        // Which of several NaNs a sum is is not laid down.
        let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
        array.to_f64_vec().unwrap().into_iter().map(bits).collect()
    }

    /// The definition, step by step.
    fn in_steps(arrays: &[Array], rounded: DType, dtype: DType) -> Array {
        let mut sum = cast(&cast(&arrays[0], rounded).unwrap(), rounded.accumulation()).unwrap();
        for array in &arrays[1..] {
            sum = accumulate(sum, &cast(array, rounded).unwrap()).unwrap();
        }
        cast(&sum, dtype).unwrap()
    }

    fn check(arrays: &[Array], rounded: DType, what: &str) {
        for count in 1..=arrays.len() {
            for dtype in [rounded, rounded.accumulation()] {
                let others: Vec<&Array> = arrays[1..count].iter().collect();
                let sum = sum_rounded(&arrays[0], &others, rounded, dtype).unwrap();
                let expected = in_steps(&arrays[..count], rounded, dtype);
                assert_eq!((sum.dtype(), sum.shape()), (dtype, expected.shape()));
                assert!(bits(&sum) == bits(&expected), "{what}: {count} rounded to {rounded}, as {dtype}");
            }
        }
        let mut sum = in_steps(&arrays[..1], rounded, rounded.accumulation());
        for array in &arrays[1..] {
            let kept = sum.clone();
            let place = accumulate_rounded(sum.clone(), array, rounded).unwrap();
            drop(kept);
            sum = accumulate_rounded(sum, array, rounded).unwrap();
            assert!(bits(&sum) == bits(&place), "{what}: in place or not");
        }
        let expected = in_steps(arrays, rounded, rounded.accumulation());
        assert!(bits(&sum) == bits(&expected), "{what}: one by one, rounded to {rounded}");
    }

    #[test]
    fn the_sum_is_that_of_conversions_and_additions_for_every_pair_of_dtypes() {
        for len in [0, 1, 2, 7, 257, 2 * BLOCK + 13] {
            for from in DType::FLOATS {
                let arrays: Vec<_> = (0..5).map(|seed| cast(&numbers(len, seed), from).unwrap()).collect();
                for rounded in DType::FLOATS {
                    check(&arrays, rounded, &format!("{len} of {from}"));
                }
            }
        }
    }

    #[test]
    fn arrays_of_several_dtypes_and_pieces_are_summed_in_their_order() {
        let len = 5 * PIECE + 3;
        let dtypes = [DType::F32, DType::BF16, DType::F16];
        let arrays: Vec<_> = dtypes
            .iter()
            .enumerate()
            .map(|(seed, &dtype)| cast(&numbers(len, seed), dtype).unwrap())
            .collect();
        for rounded in [DType::F16, DType::BF16, DType::F32] {
            check(&arrays, rounded, "pieces");
        }
    }

    #[test]
    fn views_are_read_in_their_order() {
        for from in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E5M2] {
            let whole = cast(&numbers(35 * 50, 3), from).unwrap();
            let square = whole.reshape([35, 50]).unwrap();
            let turned = whole.reshape([50, 35]).unwrap().permute(&[1, 0]).unwrap();
            let narrowed = cast(&numbers(40 * 50, 4), from).unwrap().reshape([40, 50]).unwrap();
            let narrowed = narrowed.narrow(0, 3, 35).unwrap();
            let columns = cast(&numbers(35 * 60, 4), from).unwrap().reshape([35, 60]).unwrap();
            let columns = columns.narrow(1, 7, 50).unwrap();
            let row = cast(&numbers(50, 5), from).unwrap().broadcast_to(&Shape::from([35, 50])).unwrap();
            for rounded in DType::FLOATS {
                let all = [&square, &turned, &narrowed, &columns, &row].map(Clone::clone);
                check(&all, rounded, &format!("views of {from}"));
                check(&[turned.clone(), row.clone(), square.clone()], rounded, &format!("views of {from}"));
            }
        }
    }

    #[test]
    fn the_sole_owner_adds_in_place() {
        let sum = Array::ones([3], DType::F32).unwrap();
        let place = sum.buffer().slice::<f32>().unwrap().as_ptr();
        let third = Array::full([3], 1.0 / 3.0, DType::F64).unwrap();
        let sum = accumulate_rounded(sum, &third, DType::F16).unwrap();
        assert_eq!(sum.buffer().slice::<f32>().unwrap().as_ptr(), place);
        let kept = sum.clone();
        let more = accumulate_rounded(sum, &third, DType::F16).unwrap();
        let rounded = f16::from_f64(1.0 / 3.0).to_f32();
        assert_eq!(kept.to_vec::<f32>().unwrap(), [1.0 + rounded; 3]);
        assert_eq!(more.to_vec::<f32>().unwrap(), [1.0 + rounded + rounded; 3]);
    }
}
