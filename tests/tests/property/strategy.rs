//! Random programs.

use gradpact::{DType, GradDType};
use gradpact_tests::plan::{Hook, HookKind, Life, Region, RegionKind};
use gradpact_tests::program::{
    Custom, Factor, Formula, Leaf, LeafGrad, Output, Pick, Program, Returned, Root, Seed, Step,
};
use proptest::collection::vec;
use proptest::option::weighted as maybe;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;

/// Small integers and powers of two, so that most sums are exact; now and then a number that is neither.
fn value() -> impl Strategy<Value = f64> {
    let exact = vec![1.0, -1.0, 2.0, 0.5, 0.0, 3.0, -2.0, 0.25, 5.0, -0.0, 1.5, 17.0, 2049.0, 1.0 / 1024.0];
    prop_oneof![12 => select(exact), 1 => select(vec![0.1, 1e-10, -3e-8, 300.3, 7e4, -1e30, f64::INFINITY])]
}

pub(crate) fn values(length: usize) -> impl Strategy<Value = Vec<f64>> {
    vec(value(), length)
}

fn weights() -> impl Strategy<Value = [f64; 3]> {
    let weight = || select(vec![1.0, 1.0, -1.0, 2.0, 0.5, 0.0, -2.0, 3.0, 0.25]);
    [weight(), weight(), weight()]
}

/// Any floating dtype.
pub(crate) fn float() -> impl Strategy<Value = DType> + Clone {
    select(DType::FLOATS.to_vec())
}

/// Any floating dtype, or any dtype at all.
pub(crate) fn grad_dtype() -> impl Strategy<Value = GradDType> + Clone {
    prop_oneof![6 => float().prop_map(GradDType::Exactly), 1 => Just(GradDType::Any)]
}

fn storage() -> impl Strategy<Value = DType> {
    prop_oneof![8 => float(), 1 => Just(DType::I8), 1 => Just(DType::I32)]
}

pub(crate) fn pick() -> impl Strategy<Value = Pick> {
    prop_oneof![3 => 0..4_usize, 1 => 0..32_usize].prop_map(Pick)
}

fn leaf(length: usize) -> impl Strategy<Value = Leaf> {
    let tracked = maybe(0.8, prop_oneof![Just(LeafGrad::Default), grad_dtype().prop_map(LeafGrad::Declared)]);
    let constant = storage().prop_map(|dtype| (dtype, None));
    let dtypes = prop_oneof![4 => (float(), tracked), 1 => constant];
    (dtypes, values(length)).prop_map(|((dtype, tracked), values)| Leaf { dtype, values, tracked })
}

fn output() -> impl Strategy<Value = Output> {
    let flags = (prop_oneof![6 => Just(true), 1 => Just(false)], any::<bool>());
    (storage(), grad_dtype(), weights(), flags).prop_map(
        |(dtype, declared, weights, (differentiable, converts_input))| Output {
            dtype,
            declared,
            differentiable,
            weights,
            converts_input,
        },
    )
}

fn returned() -> impl Strategy<Value = Returned> {
    (maybe(0.85, float()), weights(), maybe(0.3, grad_dtype()))
        .prop_map(|(dtype, weights, through)| Returned { dtype, weights, through })
}

fn formula() -> impl Strategy<Value = Formula> {
    let factor = prop_oneof![2 => Just(Factor::One), 3 => Just(Factor::Input), 1 => Just(Factor::Output)];
    prop_oneof![1 => Just(Formula::Values), 2 => factor.prop_map(Formula::Recorded)]
}

fn custom() -> impl Strategy<Value = Step> {
    let flags = (prop_oneof![3 => Just(true), 1 => Just(false)], any::<[bool; 2]>(), any::<u8>());
    let parts = (vec(maybe(0.9, pick()), 1..=3), vec(output(), 1..=3), vec(returned(), 3), formula());
    (parts, flags).prop_map(
        |((inputs, outputs, mut returns, formula), (declares, [materializes, saves], odd))| {
            returns.truncate(inputs.len());
            let returns_too_many = odd < 20;
            Step::Custom(Custom {
                inputs,
                outputs,
                declares,
                materializes,
                saves,
                formula,
                returns,
                returns_too_many,
            })
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => custom(),
        2 => (pick(), pick()).prop_map(|(a, b)| Step::Add(a, b)),
        2 => (pick(), pick()).prop_map(|(a, b)| Step::Mul(a, b)),
        2 => (pick(), storage()).prop_map(|(x, dtype)| Step::Cast(x, dtype)),
        1 => (pick(), grad_dtype()).prop_map(|(x, grad_dtype)| Step::Redeclare(x, grad_dtype)),
        1 => pick().prop_map(Step::Detach),
    ]
}

fn root(length: usize) -> impl Strategy<Value = Root> {
    let seed = (float(), values(length), any::<bool>());
    (pick(), any::<bool>(), seed).prop_map(move |(at, given, (dtype, values, tracked))| {
        // Only a tensor of one element can do without.
        Root { at, seed: (given || length > 1).then_some(Seed { dtype, values, tracked }) }
    })
}

/// Programs of everything that there is.
pub(crate) fn program() -> impl Strategy<Value = Program> {
    program_of(14)
}

/// Programs of at most so many steps.
pub(crate) fn program_of(steps: usize) -> impl Strategy<Value = Program> {
    (1..=3_usize).prop_flat_map(move |length| {
        let parts = (vec(leaf(length), 1..=4), vec(step(), 0..=steps), vec(root(length), 1..=3));
        parts.prop_map(move |(leaves, steps, roots)| Program { length, leaves, steps, roots })
    })
}

/// A program with some of its variables.
pub(crate) fn program_with_picks() -> impl Strategy<Value = (Program, Vec<Pick>)> {
    (program(), vec(pick(), 1..=4))
}

fn hook() -> impl Strategy<Value = Hook> {
    use HookKind::{Accumulated, After, Before, Retain, Tensor};
    let kind = select(vec![Tensor, Tensor, Before, After, Accumulated, Retain]);
    let life = select(vec![Life::Always, Life::Always, Life::Always, Life::Once, Life::Removed]);
    let replaces = maybe(0.4, select(vec![2.0, -1.0, 0.5, 0.0]));
    (kind, pick(), replaces, life).prop_map(|(kind, at, replaces, life)| Hook { kind, at, replaces, life })
}

/// Some hooks.
pub(crate) fn hooks() -> impl Strategy<Value = Vec<Hook>> {
    vec(hook(), 1..=8)
}

/// Regions that keep narrower copies of saved tensors, among others that save them.
pub(crate) fn narrowing() -> impl Strategy<Value = RegionKind> + Clone {
    prop_oneof![
        3 => float().prop_map(RegionKind::SaveIn),
        1 => Just(RegionKind::Checkpoint),
        1 => Just(RegionKind::Hooks),
    ]
}

/// Some regions of these kinds.
pub(crate) fn regions(kind: impl Strategy<Value = RegionKind> + Clone) -> impl Strategy<Value = Vec<Region>> {
    let region = (kind, 0..16_usize, 0..16_usize);
    vec(region.prop_map(|(kind, start, length)| Region { kind, start, length }), 1..=4)
}

/// Programs in which nothing is rounded: `f64` everywhere, and small integers only.
pub(crate) fn exact_program() -> impl Strategy<Value = Program> {
    program().prop_map(|mut program| {
        program.steps.truncate(7);
        for leaf in &mut program.leaves {
            leaf.dtype = DType::F64;
            leaf.tracked = leaf.tracked.map(|_| LeafGrad::Default);
            leaf.values.iter_mut().for_each(to_small_integer);
        }
        program.steps.iter_mut().for_each(to_exact);
        for seed in program.roots.iter_mut().filter_map(|root| root.seed.as_mut()) {
            seed.dtype = DType::F64;
            seed.values.iter_mut().for_each(to_small_integer);
        }
        program
    })
}

fn to_exact(step: &mut Step) {
    match step {
        Step::Custom(custom) => {
            for output in &mut custom.outputs {
                output.dtype = DType::F64;
                output.declared = GradDType::Exactly(DType::F64);
                output.weights.iter_mut().for_each(to_small_integer);
            }
            for returned in &mut custom.returns {
                returned.dtype = returned.dtype.map(|_| DType::F64);
                returned.through = returned.through.map(|_| GradDType::Exactly(DType::F64));
                returned.weights.iter_mut().for_each(to_small_integer);
            }
        }
        Step::Cast(_, dtype) => *dtype = DType::F64,
        Step::Redeclare(_, grad_dtype) => *grad_dtype = GradDType::Exactly(DType::F64),
        Step::Add(..) | Step::Mul(..) | Step::Detach(_) => {}
    }
}

fn to_small_integer(value: &mut f64) {
    // Adding zero makes a negative zero positive: integers have no sign of zero to compare.
    *value = value.clamp(-3.0, 3.0).trunc() + 0.0;
}
