//! Slices of one type added, each of whose elements is rounded first, without memory in between:
//! `round(round(a) + round(b) + …)`.
//!
//! What `rounded` does for any arrays block by block, for the commonest ones in registers.

use super::convert::Convert;
use super::simd::{self, Loop};
use crate::dtype::f16;

/// Adds elements of as many slices, each rounded to a `T`, as `f32`s from the first slice on, and rounds the sums.
pub(super) type SumFn<S, T, const N: usize> = fn(from: [&[S]; N], out: &mut [T]);

/// A kernel for types whose conversions the compiler vectorizes: all between `f32` and `bf16`, and `f64` to `f32`.
pub(super) fn plain<S: Convert<f32>, T: Convert<f32>, const N: usize>(from: [&[S]; N], out: &mut [T]) {
    simd::run(Sum { from, out });
}

struct Sum<'a, S, T, const N: usize> {
    from: [&'a [S]; N],
    out: &'a mut [T],
}

impl<S: Convert<f32>, T: Convert<f32>, const N: usize> Loop for Sum<'_, S, T, N> {
    #[inline(always)]
    fn run(self) {
        let out = self.out;
        // Loops over the slices themselves are what the compiler vectorizes.
        match self.from[..] {
            [first, second] => {
                for ((out, &first), &second) in out.iter_mut().zip(first).zip(second) {
                    *out = one([first, second]);
                }
            }
            [first, second, third] => {
                for (((out, &first), &second), &third) in out.iter_mut().zip(first).zip(second).zip(third) {
                    *out = one([first, second, third]);
                }
            }
            _ => rest(self.from, out),
        }
    }
}

#[inline(always)]
fn rest<S: Convert<f32>, T: Convert<f32>, const N: usize>(from: [&[S]; N], out: &mut [T]) {
    for (index, out) in out.iter_mut().enumerate() {
        *out = one(from.map(|from| from[index]));
    }
}

#[inline(always)]
fn one<S: Convert<f32>, T: Convert<f32>, const N: usize>(from: [S; N]) -> T {
    let mut values = from.into_iter().map(|value| T::save_one(value.load_one()).load_one());
    let first = values.next().unwrap_or_default();
    T::save_one(values.fold(first, |sum, value| sum + value))
}

/// The kernel for `f32` rounded to `f16`, if the processor has the instructions.
pub(super) fn of_f32_to_f16<const N: usize>() -> Option<SumFn<f32, f16, N>> {
    by_instruction::kernel()
}

/// The kernel for `f16`, if the processor has the instructions.
pub(super) fn of_f16<const N: usize>() -> Option<SumFn<f16, f16, N>> {
    by_instruction::kernel()
}

/// The kernel for `f16` as `f32`, if the processor has the instructions.
pub(super) fn of_f16_to_f32<const N: usize>() -> Option<SumFn<f16, f32, N>> {
    by_instruction::kernel()
}

/// Conversions of `f16` by the instructions of AVX-512.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, on memory given by pointers")]
mod by_instruction {
    use core::arch::x86_64::{
        __m512, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm256_loadu_si256, _mm256_storeu_si256,
        _mm512_add_ps, _mm512_cvtph_ps, _mm512_cvtps_ph, _mm512_loadu_ps, _mm512_storeu_ps,
    };

    use super::{SumFn, rest};
    use crate::cpu::kernels::convert::Convert;
    use crate::dtype::f16;

    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

    /// How many elements are added at a time.
    const LANES: usize = 16;

    /// An element that is read and written in vectors.
    pub(super) trait Lanes: Convert<f32> {
        /// # Safety
        /// The processor must have AVX-512F.
        unsafe fn read(from: &[Self; LANES]) -> __m512;

        /// # Safety
        /// As above.
        unsafe fn write(values: __m512, to: &mut [Self; LANES]);

        /// Each value rounded to one of these.
        ///
        /// # Safety
        /// As above.
        unsafe fn round(values: __m512) -> __m512;
    }

    impl Lanes for f32 {
        #[target_feature(enable = "avx512f")]
        unsafe fn read(from: &[Self; LANES]) -> __m512 {
            // SAFETY: sixteen elements of four bytes; this access needs no alignment.
            unsafe { _mm512_loadu_ps(from.as_ptr()) }
        }

        #[target_feature(enable = "avx512f")]
        unsafe fn write(values: __m512, to: &mut [Self; LANES]) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), values) }
        }

        #[target_feature(enable = "avx512f")]
        unsafe fn round(values: __m512) -> __m512 {
            values
        }
    }

    impl Lanes for f16 {
        #[target_feature(enable = "avx512f")]
        unsafe fn read(from: &[Self; LANES]) -> __m512 {
            // SAFETY: sixteen elements of two bytes; this access needs no alignment.
            _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
        }

        #[target_feature(enable = "avx512f")]
        unsafe fn write(values: __m512, to: &mut [Self; LANES]) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtps_ph::<NEAREST>(values)) }
        }

        #[target_feature(enable = "avx512f")]
        unsafe fn round(values: __m512) -> __m512 {
            _mm512_cvtph_ps(_mm512_cvtps_ph::<NEAREST>(values))
        }
    }

    pub(super) fn kernel<S: Lanes, T: Lanes, const N: usize>() -> Option<SumFn<S, T, N>> {
        is_x86_feature_detected!("avx512f").then_some(sum::<S, T, N>)
    }

    fn sum<S: Lanes, T: Lanes, const N: usize>(from: [&[S]; N], out: &mut [T]) {
        // SAFETY: only `kernel` gives this function away, and only if the processor has the instructions.
        unsafe { sum_avx512(from, out) };
    }

    #[target_feature(enable = "avx512f")]
    fn sum_avx512<S: Lanes, T: Lanes, const N: usize>(from: [&[S]; N], out: &mut [T]) {
        let (out, out_rest) = out.as_chunks_mut::<LANES>();
        let from_rest = from.map(|from| from.as_chunks::<LANES>().1);
        let from = from.map(|from| from.as_chunks::<LANES>().0);
        for (index, out) in out.iter_mut().enumerate() {
            // SAFETY: the processor has AVX-512F, for which this function is compiled.
            unsafe {
                let mut sum = rounded::<S, T>(&from[0][index]);
                for from in &from[1..] {
                    sum = _mm512_add_ps(sum, rounded::<S, T>(&from[index]));
                }
                T::write(sum, out);
            }
        }
        rest(from_rest, out_rest);
    }

    #[target_feature(enable = "avx512f")]
    fn rounded<S: Lanes, T: Lanes>(from: &[S; LANES]) -> __m512 {
        // SAFETY: as above.
        let values = unsafe { S::read(from) };
        // SAFETY: as above.
        if S::DTYPE == T::DTYPE { values } else { unsafe { T::round(values) } }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod by_instruction {
    use super::SumFn;

    pub(super) fn kernel<S, T, const N: usize>() -> Option<SumFn<S, T, N>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::bf16;

    fn check<S: Convert<f32>, T: Convert<f32>, const N: usize>(kernel: SumFn<S, T, N>, values: &[S]) {
        for (start, len) in [(0, 0), (0, 1), (1, 15), (3, 16), (1, 17), (5, 100), (0, values.len())] {
            // Each element meets different ones.
            let from = core::array::from_fn::<_, N, _>(|nth| {
                let mut from = values.to_vec();
                from.rotate_left(nth * 7919 % values.len());
                from
            });
            let from = from.each_ref().map(|from| &from[start..(start + len).min(values.len())]);
            let (mut expected, mut got) =
                (vec![T::default(); from[0].len()], vec![T::default(); from[0].len()]);
            rest(from, &mut expected);
            kernel(from, &mut got);
            for (got, expected) in got.into_iter().zip(expected) {
                let (got, expected): (f32, f32) = (got.load_one(), expected.load_one());
                assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan());
            }
        }
    }

    fn check_all<const N: usize>() {
        let halves: Vec<_> = (0..=u16::MAX).map(f16::from_bits).collect();
        // All f16s, and what lies around the ties between them.
        let between = |&half: &f16| {
            let value = half.to_f32();
            [value, value * 1.000_244_1, value * 1.000_488_4, f32::from_bits(value.to_bits() ^ 0x1001)]
        };
        let singles: Vec<_> = halves.iter().flat_map(between).collect();
        let brains: Vec<_> = (0..=u16::MAX).map(bf16::from_bits).collect();
        let doubles: Vec<_> = singles.iter().map(|&single| f64::from(single) * 1.000_000_05).collect();
        if let Some(kernel) = of_f32_to_f16::<N>() {
            check(kernel, &singles);
        }
        if let Some(kernel) = of_f16::<N>() {
            check(kernel, &halves);
        }
        if let Some(kernel) = of_f16_to_f32::<N>() {
            check(kernel, &halves);
        }
        check(plain::<f32, bf16, N>, &singles);
        check(plain::<bf16, bf16, N>, &brains);
        check(plain::<bf16, f32, N>, &brains);
        check(plain::<f64, f32, N>, &doubles);
    }

    #[test]
    fn vectors_are_added_as_single_elements_are() {
        check_all::<2>();
        check_all::<3>();
    }
}
