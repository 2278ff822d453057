//! Conversions of slices between `f32` and the 8- and 16-bit floats, as fast as memory: with instructions for it, or without
//! branches so that the compiler vectorizes them. Single values are converted in `convert`.

use core::marker::PhantomData;

use half::slice::HalfFloatSliceExt;

use super::compute::Compute;
use super::convert::Convert;
use super::simd::{self, Loop};
use crate::dtype::{bf16, f8e4m3, f8e5m2, f16};

/// Each element of `from` as an `f32`.
pub(super) fn load_f16(from: &[f16], to: &mut [f32]) {
    if !by_instruction::load(from, to) {
        from.convert_to_f32_slice(to);
    }
}

/// Each element of `from` rounded to an `f16`.
pub(super) fn save_f16(from: &[f32], to: &mut [f16]) {
    if !by_instruction::save(from, to) {
        to.convert_from_f32_slice(from);
    }
}

/// Puts each element of `from` into its place in `to`.
pub(super) fn put_f16<P: Put>(from: &[f16], to: &mut [f32]) {
    if !by_instruction::put::<P>(from, to) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = P::of(*to, from.to_f32());
        }
    }
}

/// Puts each element of `from`, rounded to an `f16`, into its place in `to`.
pub(super) fn round_f16<P: Put>(from: &[f32], to: &mut [f32]) {
    if !by_instruction::round::<P>(from, to) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = P::of(*to, f16::from_f32(from).to_f32());
        }
    }
}

/// [`Convert::load_one`] of each, vectorized.
pub(super) fn load<T: Convert<f32>>(from: &[T], to: &mut [f32]) {
    simd::run(Load { from, to });
}

/// [`Convert::save_one`] of each, vectorized.
pub(super) fn save<T: Convert<f32>>(from: &[f32], to: &mut [T]) {
    simd::run(Save { from, to });
}

struct Load<'a, T> {
    from: &'a [T],
    to: &'a mut [f32],
}

impl<T: Convert<f32>> Loop for Load<'_, T> {
    #[inline(always)]
    fn run(self) {
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to = from.load_one();
        }
    }
}

struct Save<'a, T> {
    from: &'a [f32],
    to: &'a mut [T],
}

impl<T: Convert<f32>> Loop for Save<'_, T> {
    #[inline(always)]
    fn run(self) {
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to = T::save_one(from);
        }
    }
}

/// What becomes of a number where another is put.
pub(super) trait Put {
    /// Whether the other is added; else it takes its place.
    const ADDS: bool;

    #[inline(always)]
    fn of<C: Compute>(own: C, other: C) -> C {
        if Self::ADDS { own.plus(other) } else { other }
    }
}

/// The other takes its place.
pub(super) struct Set;

impl Put for Set {
    const ADDS: bool = false;
}

/// The other is added.
pub(super) struct Add;

impl Put for Add {
    const ADDS: bool = true;
}

/// Puts each element of `from` into its place in `to`.
pub(super) fn put<T: Convert<f32>, P: Put>(from: &[T], to: &mut [f32]) {
    simd::run(PutEach { from, to, put: PhantomData::<P> });
}

/// Puts each element of `from`, rounded to a `bf16`, into its place in `to`.
pub(super) fn round_bf16<P: Put>(from: &[f32], to: &mut [f32]) {
    simd::run(RoundEach { from, to, put: PhantomData::<P> });
}

struct PutEach<'a, T, P> {
    from: &'a [T],
    to: &'a mut [f32],
    put: PhantomData<P>,
}

impl<T: Convert<f32>, P: Put> Loop for PutEach<'_, T, P> {
    #[inline(always)]
    fn run(self) {
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to = P::of(*to, from.load_one());
        }
    }
}

struct RoundEach<'a, P> {
    from: &'a [f32],
    to: &'a mut [f32],
    put: PhantomData<P>,
}

impl<P: Put> Loop for RoundEach<'_, P> {
    #[inline(always)]
    fn run(self) {
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to = P::of(*to, bf16::save_one(from).load_one());
        }
    }
}

/// Conversions of `f16` by the instructions F16C. All return whether the processor has them.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, on memory given by pointers")]
mod by_instruction {
    use core::arch::x86_64::{
        __m256, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_ps, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    use super::Put;
    use crate::dtype::f16;

    pub(super) fn load(from: &[f16], to: &mut [f32]) -> bool {
        let possible = is_x86_feature_detected!("f16c");
        if possible {
            // SAFETY: the processor has the instructions, as it just said.
            unsafe { load_f16c(from, to) };
        }
        possible
    }

    pub(super) fn save(from: &[f32], to: &mut [f16]) -> bool {
        let possible = is_x86_feature_detected!("f16c");
        if possible {
            // SAFETY: as above.
            unsafe { save_f16c(from, to) };
        }
        possible
    }

    pub(super) fn put<P: Put>(from: &[f16], to: &mut [f32]) -> bool {
        let possible = is_x86_feature_detected!("f16c");
        if possible {
            // SAFETY: as above.
            unsafe { put_f16c::<P>(from, to) };
        }
        possible
    }

    pub(super) fn round<P: Put>(from: &[f32], to: &mut [f32]) -> bool {
        let possible = is_x86_feature_detected!("f16c");
        if possible {
            // SAFETY: as above.
            unsafe { round_f16c::<P>(from, to) };
        }
        possible
    }

    #[target_feature(enable = "f16c")]
    fn put_f16c<P: Put>(from: &[f16], to: &mut [f32]) {
        let (from, from_rest) = from.as_chunks::<8>();
        let (to, to_rest) = to.as_chunks_mut::<8>();
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: eight elements of two bytes; this access needs no alignment.
            let halves = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
            put_eight::<P>(_mm256_cvtph_ps(halves), to);
        }
        for (to, from) in to_rest.iter_mut().zip(from_rest) {
            *to = P::of(*to, from.to_f32());
        }
    }

    #[target_feature(enable = "f16c")]
    fn round_f16c<P: Put>(from: &[f32], to: &mut [f32]) {
        let (from, from_rest) = from.as_chunks::<8>();
        let (to, to_rest) = to.as_chunks_mut::<8>();
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: eight elements of four bytes; this access needs no alignment.
            let exact = unsafe { _mm256_loadu_ps(from.as_ptr()) };
            put_eight::<P>(_mm256_cvtph_ps(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(exact)), to);
        }
        for (to, &from) in to_rest.iter_mut().zip(from_rest) {
            *to = P::of(*to, f16::from_f32(from).to_f32());
        }
    }

    #[target_feature(enable = "f16c")]
    fn put_eight<P: Put>(values: __m256, to: &mut [f32; 8]) {
        // SAFETY: eight elements of four bytes; these accesses need no alignment.
        unsafe {
            let own = _mm256_loadu_ps(to.as_ptr());
            _mm256_storeu_ps(to.as_mut_ptr(), if P::ADDS { _mm256_add_ps(own, values) } else { values });
        }
    }

    #[target_feature(enable = "f16c")]
    fn load_f16c(from: &[f16], to: &mut [f32]) {
        let (from, from_rest) = from.as_chunks::<8>();
        let (to, to_rest) = to.as_chunks_mut::<8>();
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: each is eight elements, of two and of four bytes; these accesses need no alignment.
            unsafe {
                _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())));
            }
        }
        for (to, from) in to_rest.iter_mut().zip(from_rest) {
            *to = from.to_f32();
        }
    }

    #[target_feature(enable = "f16c")]
    fn save_f16c(from: &[f32], to: &mut [f16]) {
        let (from, from_rest) = from.as_chunks::<8>();
        let (to, to_rest) = to.as_chunks_mut::<8>();
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: as above.
            unsafe {
                let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from.as_ptr()));
                _mm_storeu_si128(to.as_mut_ptr().cast(), halves);
            }
        }
        for (to, &from) in to_rest.iter_mut().zip(from_rest) {
            *to = f16::from_f32(from);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod by_instruction {
    use super::Put;
    use crate::dtype::f16;

    pub(super) fn put<P: Put>(_: &[f16], _: &mut [f32]) -> bool {
        false
    }

    pub(super) fn round<P: Put>(_: &[f32], _: &mut [f32]) -> bool {
        false
    }

    pub(super) fn load(_: &[f16], _: &mut [f32]) -> bool {
        false
    }

    pub(super) fn save(_: &[f32], _: &mut [f16]) -> bool {
        false
    }
}

/// The magnitude bits of `value` rounded to a float of `FRACTION` bits whose smallest normal exponent, as that of an `f32` is
/// stored, is `LOWEST`; past the largest finite one they go on as if there were more exponents.
///
/// Adding a number whose last place is the wanted one rounds as the processor rounds every sum: to nearest even.
#[inline(always)]
fn magnitude<const LOWEST: u32, const FRACTION: u32>(value: f32) -> u32 {
    // Larger than all values of both formats.
    let value = value.abs().min(131_072.0);
    let exponent = (value.to_bits() >> 23).max(LOWEST);
    let last_place = f32::from_bits((exponent + 23 - FRACTION) << 23);
    let significand = (value + last_place).to_bits().wrapping_sub(last_place.to_bits());
    ((exponent - LOWEST) << FRACTION) + significand
}

/// [`f8e4m3::from_f32`] without branches.
#[inline(always)]
pub(super) fn to_f8e4m3(value: f32) -> f8e4m3 {
    let magnitude = magnitude::<121, 3>(value).min(0x7e);
    let magnitude = if value.is_nan() { 0x7f } else { magnitude };
    f8e4m3::from_bits((value.to_bits() >> 31 << 7 | magnitude) as u8)
}

/// [`f8e5m2::from_f32`] without branches.
#[inline(always)]
pub(super) fn to_f8e5m2(value: f32) -> f8e5m2 {
    let magnitude = magnitude::<113, 2>(value).min(0x7c);
    let magnitude = if value.is_nan() { 0x7f } else { magnitude };
    f8e5m2::from_bits((value.to_bits() >> 31 << 7 | magnitude) as u8)
}

/// Every value of a format of 8 bits.
macro_rules! table {
    ($type:ident) => {{
        static TABLE: std::sync::LazyLock<[f32; 256]> =
            std::sync::LazyLock::new(|| core::array::from_fn(|bits| $type::from_bits(bits as u8).to_f32()));
        &*TABLE
    }};
}

/// Each element of `from` as an `f32`.
pub(super) fn load_f8e4m3(from: &[f8e4m3], to: &mut [f32]) {
    let values = table!(f8e4m3);
    for (to, from) in to.iter_mut().zip(from) {
        *to = values[usize::from(from.to_bits())];
    }
}

/// Each element of `from` as an `f32`.
pub(super) fn load_f8e5m2(from: &[f8e5m2], to: &mut [f32]) {
    let values = table!(f8e5m2);
    for (to, from) in to.iter_mut().zip(from) {
        *to = values[usize::from(from.to_bits())];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 16381st f32, and all those near a tie of any format of 8 bits.
    fn all_sorts() -> impl Iterator<Item = f32> {
        let near_ties =
            (0..=u32::MAX >> 18).flat_map(|high| [0, 1, (1 << 18) - 1].map(|low| high << 18 | low));
        (0..=u32::MAX).step_by(16_381).chain(near_ties).map(f32::from_bits)
    }

    #[test]
    fn floats_of_8_bits_are_rounded_as_by_their_own_conversions() {
        for value in all_sorts() {
            assert_eq!(to_f8e4m3(value).to_bits(), f8e4m3::from_f32(value).to_bits(), "{value:e}");
            assert_eq!(to_f8e5m2(value).to_bits(), f8e5m2::from_f32(value).to_bits(), "{value:e}");
        }
        let bytes = 0..=u8::MAX;
        let mut values = [0.0; 256];
        load_f8e4m3(&bytes.clone().map(f8e4m3::from_bits).collect::<Vec<_>>(), &mut values);
        let exact = bytes.clone().map(|bits| f8e4m3::from_bits(bits).to_f32().to_bits());
        assert!(exact.eq(values.map(f32::to_bits)));
        load_f8e5m2(&bytes.clone().map(f8e5m2::from_bits).collect::<Vec<_>>(), &mut values);
        let exact = bytes.map(|bits| f8e5m2::from_bits(bits).to_f32().to_bits());
        assert!(exact.eq(values.map(f32::to_bits)));
    }

    #[test]
    fn slices_of_any_length_and_alignment_are_converted_whole() {
        let wide: Vec<f32> = (0..100).map(|nth| nth as f32 * 0.7 - 30.0).collect();
        for (start, len) in [(0, 0), (0, 1), (1, 7), (3, 8), (1, 9), (5, 17), (1, 99)] {
            let from = &wide[start..start + len];
            let mut halves = vec![f16::ZERO; 100];
            save_f16(from, &mut halves[start..start + len]);
            assert!(halves[start..start + len].iter().zip(from).all(|(half, &v)| *half == f16::from_f32(v)));
            assert!(halves[..start].iter().chain(&halves[start + len..]).all(|half| *half == f16::ZERO));
            let mut back = vec![0.0; 100];
            load_f16(&halves[start..start + len], &mut back[start..start + len]);
            assert!(back.iter().zip(&halves).all(|(v, half)| *v == half.to_f32()));
            let at = start..start + len;
            let (mut sums, mut rounded, mut narrow) = (wide.clone(), wide.clone(), wide.clone());
            put_f16::<Add>(&halves[at.clone()], &mut sums[at.clone()]);
            round_f16::<Add>(from, &mut rounded[at.clone()]);
            round_bf16::<Set>(from, &mut narrow[at.clone()]);
            for (index, &value) in wide.iter().enumerate() {
                let inside = at.contains(&index);
                let sum = if inside { value + f16::from_f32(value).to_f32() } else { value };
                assert_eq!((sums[index], rounded[index]), (sum, sum));
                assert_eq!(narrow[index], if inside { bf16::from_f32(value).to_f32() } else { value });
            }
        }
    }
}
