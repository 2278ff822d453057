//! Random programs: what holds for the gradients of every one, on every engine.
//!
//! Cases are drawn from fixed seeds, so that every run tries the same. `GRADPACT_SEED` and `GRADPACT_CASES` try others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod captures;
mod contract;
mod higher;
mod hooks;
mod jets;
mod leaves;
mod order;
mod paths;
mod regions;
mod strategy;
mod strict;

use gradpact::{DType, DynTensor};
use gradpact_tests::lab::{Lab, seen};
use gradpact_tests::log::{Entry, Seen};
use gradpact_tests::program::Pick;
use gradpact_tests::reference::{Reference, Tensor};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use proptest::{prop_assert, prop_assert_eq};

/// What a property says of one case.
type Verdict = Result<(), TestCaseError>;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Tries a property on `cases` values of a strategy; of a failing one the smallest is shown.
fn check<S: Strategy>(seed: u64, cases: u32, strategy: S, property: impl Fn(S::Value) -> Verdict) {
    let config = Config {
        cases: number("GRADPACT_CASES").map_or(cases, |cases| cases as u32),
        rng_seed: RngSeed::Fixed(number("GRADPACT_SEED").unwrap_or(seed)),
        failure_persistence: None,
        // In milliseconds: a small case soon is better than the smallest late.
        max_shrink_time: 20_000,
        ..Config::default()
    };
    if let Err(failure) = TestRunner::new(config).run(&strategy, property) {
        panic!("{failure}");
    }
}

/// Values by their bits, where one NaN is like another.
fn same_values(a: &[f64], b: &[f64]) -> bool {
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// Whether a gradient is what the reference says: dtype always, values where the contract settles them.
fn agrees(got: &Seen, expected: Option<&Tensor>) -> bool {
    match (got, expected) {
        (None, None) => true,
        (Some((dtype, values)), Some(grad)) => {
            *dtype == grad.dtype && (!grad.certain || same_values(values, &grad.values))
        }
        _ => false,
    }
}

/// The variables that a case asks the gradients of.
fn picked(reference: &Reference<'_>, picks: &[Pick]) -> Vec<usize> {
    let tracked = reference.tracked();
    let picks = picks.iter().filter(|_| !tracked.is_empty());
    picks.map(|pick| tracked[pick.of(tracked.len())]).collect()
}

/// Whether the same ones saw the same gradients, in the same order.
fn same_log(got: &[Entry], expected: &[Entry<Tensor>]) -> Verdict {
    let who = |entry: &Entry| entry.who;
    let (called, to_call): (Vec<_>, Vec<_>) =
        (got.iter().map(who).collect(), expected.iter().map(|entry| entry.who).collect());
    prop_assert_eq!(called, to_call, "who was called");
    for (got, expected) in got.iter().zip(expected) {
        prop_assert_eq!(&got.needs, &expected.needs, "what {:?} was asked for", got.who);
        prop_assert_eq!(got.saw.len(), expected.saw.len());
        for (position, (saw, should)) in got.saw.iter().zip(&expected.saw).enumerate() {
            prop_assert!(
                agrees(saw, should.as_ref()),
                "{:?} saw at {position} {saw:?}, not {should:?}",
                got.who
            );
        }
    }
    Ok(())
}

/// Whether two gradients of the same engine are the same.
fn identical(a: &Seen, b: &Seen) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some((a, xs)), Some((b, ys))) => a == b && same_values(xs, ys),
        _ => false,
    }
}

/// The gradient that a leaf holds.
fn leaf_grad<E: Lab>(leaf: &DynTensor<E>) -> Result<Seen, TestCaseError> {
    Ok(seen(leaf.grad().as_ref())?)
}

/// Makes one test for each engine out of a property that is generic over it.
macro_rules! on_every_engine {
    ($($(#[$doc:meta])* $name:ident($seed:literal, $cases:literal, $strategy:expr) => $property:ident;)*) => {
        mod toy {
            use super::*;
            $($(#[$doc])* #[test] fn $name() {
                $crate::check($seed, $cases, $strategy, |case| $property::<gradpact_tests::toy::Toy>(&case));
            })*
        }
        mod cpu {
            use super::*;
            $($(#[$doc])* #[test] fn $name() {
                $crate::check($seed, $cases, $strategy, |case| $property::<gradpact::Cpu>(&case));
            })*
        }
    };
}
pub(crate) use on_every_engine;

/// The dtypes whose sums are formed in `f32`.
const SMALL: [DType; 4] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16];
