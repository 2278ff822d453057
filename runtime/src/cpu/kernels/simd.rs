//! Runs a loop compiled for the vector instructions that this processor has. What is computed is written elsewhere.
//!
//! A loop is ordinary code that the compiler vectorizes. It is compiled once for every [`Level`], and none of them fuses a
//! multiplication with an addition, so the results are the same on every processor.

/// A loop, with all it works on.
pub(crate) trait Loop {
    /// Runs it. Implementations are `#[inline(always)]`, so as to be compiled for each level.
    fn run(self);
}

/// Runs `work` with the widest vectors there are.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "a function for some processors only may be called on those only")]
pub(crate) fn run(work: impl Loop) {
    match Level::of_this_processor() {
        // SAFETY: the processor has these instructions, as it said itself.
        Level::Avx512 => unsafe { with_avx512(work) },
        // SAFETY: as above.
        Level::Avx2 => unsafe { with_avx2(work) },
        Level::Any => work.run(),
    }
}

/// Runs `work`.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn run(work: impl Loop) {
    work.run();
}

/// Instructions that loops are compiled for.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Any,
    Avx2,
    Avx512,
}

#[cfg(target_arch = "x86_64")]
impl Level {
    /// The standard library asks the processor once and remembers.
    fn of_this_processor() -> Self {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx2, avx512) {
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            (false, _) => Self::Any,
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
fn with_avx512(work: impl Loop) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn with_avx2(work: impl Loop) {
    work.run();
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::math;
    use super::*;

    /// Operations that a fused multiplication would change.
    struct Chain<'a>(&'a mut [f32]);

    impl Loop for Chain<'_> {
        #[inline(always)]
        fn run(self) {
            for x in self.0 {
                *x = math::gelu(*x * 1.1 + 0.3) * *x - (f64::from(*x) * 0.7 + 0.1) as f32;
            }
        }
    }

    #[test]
    #[allow(unsafe_code, reason = "as in `run`")]
    fn every_level_gives_the_same_bits() {
        let start: Vec<f32> = (0..1000).map(|nth| (nth as f32).sin()).collect();
        let result = |run: &dyn Fn(Chain<'_>)| {
            let mut values = start.clone();
            run(Chain(&mut values));
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let expected = result(&|chain| chain.run());
        assert_eq!(result(&|chain| run(chain)), expected);
        if Level::of_this_processor() != Level::Any {
            // SAFETY: the processor has AVX2.
            assert_eq!(result(&|chain| unsafe { with_avx2(chain) }), expected);
        }
        if Level::of_this_processor() == Level::Avx512 {
            // SAFETY: the processor has AVX-512.
            assert_eq!(result(&|chain| unsafe { with_avx512(chain) }), expected);
        }
    }
}
