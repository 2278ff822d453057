//! Regions around parts of a program: checkpoints, hooks on saved tensors, compute dtypes. They change no gradient, but for
//! narrower copies, and those as the copies say.

use std::collections::{BTreeMap, BTreeSet};

use gradpact::{BackwardOptions, DType, autocast, backward, grad};
use gradpact_tests::lab::{Lab, Run, seen};
use gradpact_tests::plan::{Path, Region, RegionKind, around};
use gradpact_tests::program::Program;
use gradpact_tests::reference::Reference;
use proptest::option::weighted as maybe;
use proptest::prelude::{Just, Strategy};
use proptest::prop_oneof;
use proptest::{prop_assert, prop_assert_eq};

use crate::strategy::{float, narrowing, program, regions};
use crate::{Verdict, agrees, identical, same_log};

/// A program, regions in it, and one that backward is called from.
type Case = (Program, Vec<Region>, Option<DType>);

super::on_every_engine! {
    checkpoints_hooks_that_do_nothing_and_compute_dtypes_change_no_bit(61, 700, neutral()) => no_bit;
    a_checkpoint_runs_again_once_for_a_backward_that_needs_what_it_saved(62, 700, neutral()) => runs;
    second_gradients_pass_regions_unchanged(63, 400, neutral()) => second;
    narrower_copies_of_saved_tensors_give_the_gradients_that_follow_from_them(64, 700, narrower_copies()) => narrower;
}

fn neutral() -> impl Strategy<Value = Case> {
    let kind = prop_oneof![
        3 => Just(RegionKind::Checkpoint),
        1 => Just(RegionKind::Hooks),
        1 => Just(RegionKind::SaveIn(DType::F64)),
        2 => maybe(0.8, float()).prop_map(RegionKind::Autocast),
    ];
    (program(), regions(kind), maybe(0.5, float()))
}

fn narrower_copies() -> impl Strategy<Value = Case> {
    (program(), regions(narrowing()), maybe(0.5, float()))
}

fn no_bit<E: Lab>((program, regions, from): &Case) -> Verdict {
    let (plain, inside) = (Run::<E>::new(program)?, Run::<E>::inside(program, regions)?);
    let mut logs = Vec::new();
    for retain in [true, false] {
        let options = BackwardOptions::new();
        let options = if retain { options.retain_graph() } else { options };
        backward(&plain.roots(), options)?;
        autocast(*from, || backward(&inside.roots(), options))??;
        logs.push((plain.take_log(), inside.take_log()));
    }
    for (a, b) in logs.iter().flat_map(|(a, b)| a.iter().zip(b)) {
        prop_assert_eq!((a.who, &a.needs), (b.who, &b.needs));
        prop_assert!(a.saw.iter().zip(&b.saw).all(|(a, b)| identical(a, b)), "{a:?} {b:?}");
    }
    prop_assert!(logs.iter().all(|(a, b)| a.len() == b.len()));
    for (a, b) in plain.variables.iter().zip(&inside.variables) {
        prop_assert!(identical(&seen(Some(a))?, &seen(Some(b))?), "forward: {a:?} {b:?}");
        let (a, b) = (seen(a.grad().as_ref())?, seen(b.grad().as_ref())?);
        prop_assert!(identical(&a, &b), "{a:?} {b:?}");
    }
    Ok(())
}

/// How often each checkpoint runs in a backward that needs what these steps saved, in this order: unpacking the first tensor
/// of a region runs it again, with all checkpoints in it, and what that saves is kept for those that follow.
fn expected_runs(
    program: &Program,
    regions: &[Region],
    saving: &BTreeSet<usize>,
    needed: &[usize],
) -> BTreeMap<Path, usize> {
    let steps = program.steps.len();
    let mut runs = BTreeMap::new();
    let around: Vec<_> = (0..steps).map(|step| around(step, steps, regions)).collect();
    let packing = |step: usize| {
        let innermost = around[step].iter().rfind(|(_, kind)| !matches!(kind, RegionKind::Autocast(_)));
        innermost.filter(|(_, kind)| *kind == RegionKind::Checkpoint).map(|(path, _)| path)
    };
    let checkpoints: BTreeSet<&Path> =
        around.iter().flatten().filter(|(_, kind)| *kind == RegionKind::Checkpoint).map(|(p, _)| p).collect();
    let again: BTreeSet<_> =
        needed.iter().filter(|step| saving.contains(step)).filter_map(|&step| packing(step)).collect();
    for path in again {
        for inner in checkpoints.iter().filter(|inner| inner.starts_with(path)) {
            *runs.entry((*inner).clone()).or_default() += 1;
        }
    }
    runs
}

fn runs<E: Lab>((program, regions, _): &Case) -> Verdict {
    let (mut reference, run) = (Reference::inside(program, regions), Run::<E>::inside(program, regions)?);
    let first = run.take_runs();
    prop_assert!(first.values().all(|&runs| runs == 1), "forward: {first:?}");
    for options in [BackwardOptions::new().retain_graph(), BackwardOptions::new()] {
        backward(&run.roots(), options)?;
        let needed = reference.backward(false).unpacked;
        let expected = expected_runs(program, regions, &reference.saving_steps(), &needed);
        prop_assert_eq!(run.take_runs(), expected);
    }
    Ok(())
}

fn second<E: Lab>((program, regions, _): &Case) -> Verdict {
    let mut found = Vec::new();
    for regions in [&[][..], regions] {
        let run = Run::<E>::inside(program, regions)?;
        let leaves: Vec<_> = run.leaves().iter().filter(|leaf| leaf.requires_grad()).collect();
        let options = BackwardOptions::new().allow_unused();
        let first = grad(&run.roots(), &leaves, options.create_graph())?;
        let tracked: Vec<_> = first.iter().flatten().filter(|grad| grad.requires_grad()).collect();
        // Each gradient is its own seed.
        let roots: Vec<_> = tracked.iter().map(|grad| (*grad, Some(*grad))).collect();
        let second = if roots.is_empty() { vec![] } else { grad(&roots, &leaves, options)? };
        let both = first.iter().chain(&second).map(|grad| seen(grad.as_ref()));
        found.push(both.collect::<Result<Vec<_>, _>>()?);
    }
    prop_assert_eq!(found[0].len(), found[1].len());
    for (a, b) in found[0].iter().zip(&found[1]) {
        prop_assert!(identical(a, b), "{a:?} {b:?}");
    }
    Ok(())
}

fn narrower<E: Lab>((program, regions, from): &Case) -> Verdict {
    let (mut reference, run) = (Reference::inside(program, regions), Run::<E>::inside(program, regions)?);
    autocast(*from, || backward(&run.roots(), BackwardOptions::new()))??;
    same_log(&run.take_log(), &reference.backward(false).log)?;
    for (position, leaf) in run.leaves().iter().enumerate() {
        let (got, expected) = (seen(leaf.grad().as_ref())?, reference.grad(position));
        prop_assert!(agrees(&got, expected), "leaf {position}: {got:?}, {expected:?}");
    }
    Ok(())
}
