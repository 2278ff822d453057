//! Gradients of gradients: their values, their dtypes, and the contract at every order.

use std::cell::Cell;

use gradpact::{BackwardOptions, DynTensor, Result, grad};
use gradpact_tests::lab::{Lab, Run, seen};
use gradpact_tests::plan::{Hook, Region};
use gradpact_tests::program::{Pick, Program};
use gradpact_tests::reference::{Outcome, Reference};
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};

use crate::strategy::{hooks, narrowing, pick, program_of, regions};
use crate::{Verdict, agrees, same_log};

/// A program, with hooks and in regions; and choices: what to differentiate with respect to, and which results to
/// differentiate again.
type Case = (Program, Vec<Region>, Vec<Hook>, Vec<Pick>);

super::on_every_engine! {
    second_gradients_are_those_of_the_contract_at_every_tensor(41, 700, case(9)) => second;
    third_gradients_are_those_of_the_contract_at_every_tensor(42, 250, case(5)) => third;
}

fn case(steps: usize) -> impl Strategy<Value = Case> {
    let some = |number: u8| number == 0;
    let around = (regions(narrowing()), hooks(), (0..3_u8).prop_map(some), (0..3_u8).prop_map(some));
    (program_of(steps), around, vec(pick(), 3..=6)).prop_map(
        |(program, (mut regions, mut hooks, in_regions, hooked), picks)| {
            regions.truncate(if in_regions { 2 } else { 0 });
            hooks.truncate(if hooked { 2 } else { 0 });
            (program, regions, hooks, picks)
        },
    )
}

fn second<E: Lab>(case: &Case) -> Verdict {
    Orders::<E>::new(case)?.compare(2)
}

fn third<E: Lab>(case: &Case) -> Verdict {
    Orders::<E>::new(case)?.compare(3)
}

/// The gradients of a backward, for each input: a tensor of the engine, and one of the reference.
type Found<E> = Vec<Option<(DynTensor<E>, usize)>>;

/// One program on an engine and on the reference, differentiated again and again.
struct Orders<'c, E: Lab> {
    picks: &'c [Pick],
    length: usize,
    run: Run<E>,
    reference: Reference<'c>,
    /// What gradients are asked of: some variables, the tracked seeds, and in higher orders some earlier gradients.
    inputs: Vec<(DynTensor<E>, usize)>,
    /// What is differentiated, with its seeds.
    roots: Vec<(DynTensor<E>, usize)>,
    seeds: Vec<(Option<DynTensor<E>>, usize)>,
}

impl<'c, E: Lab> Orders<'c, E> {
    fn new((program, regions, hooks, picks): &'c Case) -> Result<Self> {
        let mut reference = Reference::inside(program, regions);
        let run = Run::<E>::inside(program, regions)?;
        reference.register(hooks);
        run.register(hooks)?;
        let tracked = reference.tracked();
        let mut asked: Vec<usize> = (0..program.leaves.len()).filter(|leaf| tracked.contains(leaf)).collect();
        asked
            .extend(picks.iter().filter(|_| !tracked.is_empty()).map(|pick| tracked[pick.of(tracked.len())]));
        let variable = |variable: usize| (run.variables[variable].clone(), reference.variable(variable));
        let mut inputs: Vec<_> = asked.into_iter().map(variable).collect();
        let both = || run.roots.iter().zip(reference.roots());
        let roots = both().map(|((root, _), &(id, _))| (root.clone(), id)).collect();
        let seeds: Vec<_> = both().map(|((_, seed), &(_, id))| (seed.clone(), id)).collect();
        let tracked_seed = |(seed, id): &(Option<DynTensor<E>>, usize)| Some((seed.clone()?, *id));
        inputs.extend(seeds.iter().filter_map(tracked_seed).filter(|(seed, _)| seed.requires_grad()));
        Ok(Self { picks, length: program.length, run, reference, inputs, roots, seeds })
    }

    /// One backward on both, compared. Returns what the reference found, and the engine's gradients with the reference's.
    fn pass(&mut self, last: bool) -> Result<(Outcome, Found<E>), TestCaseError> {
        let seeds = self.seeds.iter().map(|(seed, _)| seed.as_ref());
        let roots: Vec<_> = self.roots.iter().map(|(root, _)| root).zip(seeds).collect();
        let inputs: Vec<_> = self.inputs.iter().map(|(input, _)| input).collect();
        let options = BackwardOptions::new().allow_unused();
        self.run.begin_pass();
        let got = grad(&roots, &inputs, if last { options } else { options.create_graph() })?;
        let ids: Vec<_> = self.roots.iter().zip(&self.seeds).map(|(root, seed)| (root.1, seed.1)).collect();
        let asked: Vec<_> = self.inputs.iter().map(|(_, id)| *id).collect();
        let outcome = self.reference.gradients(&ids, &asked, !last);
        let mut pairs = Vec::new();
        for (position, (got, (_, input))) in got.into_iter().zip(&self.inputs).enumerate() {
            let id = outcome.gradient(*input);
            let expected = id.map(|id| self.reference.tensor(id));
            let values = seen(got.as_ref())?;
            prop_assert!(agrees(&values, expected), "input {position}: {values:?}, {expected:?}");
            if let (Some(got), Some(expected)) = (&got, expected) {
                prop_assert_eq!(got.requires_grad(), expected.contract.is_some(), "input {}", position);
                prop_assert_eq!(got.grad_dtype().zip(got.grad_dtype_source()), expected.shown_contract());
                // Said once more without the reference: it has the gradient dtype of the tensor that it belongs to.
                let declared = self.inputs[position].0.grad_dtype().and_then(gradpact::GradDType::dtype);
                prop_assert!(declared.is_none_or(|declared| declared == got.dtype()));
            }
            pairs.push(got.zip(id));
        }
        Ok((outcome, pairs))
    }

    /// Takes gradients of gradients up to an order; which of several nodes of a backward runs first is left open.
    fn compare(&mut self, orders: usize) -> Verdict {
        for order in 1..=orders {
            let (mut outcome, pairs) = self.pass(order == orders)?;
            let mut log = self.run.take_log();
            log.sort_by_key(|entry| entry.who);
            outcome.log.sort_by_key(|entry| entry.who);
            same_log(&log, &outcome.log)?;
            let found: Vec<_> =
                pairs.into_iter().flatten().filter(|(grad, _)| grad.requires_grad()).collect();
            if found.is_empty() {
                break;
            }
            self.roots = self.picks.iter().take(3).map(|pick| found[pick.of(found.len())].clone()).collect();
            self.inputs.extend(self.picks.iter().skip(3).map(|pick| found[pick.of(found.len())].clone()));
            self.seeds.clear();
            for position in 0..self.roots.len() {
                // Whatever dtype the gradient has, its own gradient may come in any.
                let dtype = gradpact::DType::FLOATS[(position + self.length) % 6];
                let values: Vec<_> =
                    (0..self.length).map(|element| [1.0, -2.0, 0.5][(element + order) % 3]).collect();
                self.seeds.push((Some(E::tensor(dtype, &values)?), self.reference.constant(dtype, &values)));
            }
        }
        Ok(())
    }
}

#[test]
fn the_reference_finds_and_settles_many_second_gradients() {
    let (certain, all, tried) = (Cell::new(0), Cell::new(0), Cell::new(0));
    crate::check(41, 500, case(9), |case| {
        tried.set(tried.get() + 1);
        let mut orders = Orders::<gradpact_tests::toy::Toy>::new(&case)?;
        let (_, pairs) = orders.pass(false)?;
        let found: Vec<_> = pairs.into_iter().flatten().filter(|(grad, _)| grad.requires_grad()).collect();
        let roots = found.iter().map(|&(_, id)| {
            let dtype = orders.reference.tensor(id).dtype;
            (id, orders.reference.constant(dtype, &vec![1.0; orders.length]))
        });
        let roots: Vec<_> = roots.collect();
        let asked: Vec<_> = orders.inputs.iter().map(|&(_, id)| id).collect();
        let outcome = orders.reference.gradients(&roots, &asked, false);
        for grad in asked.iter().filter_map(|&input| outcome.gradient(input)) {
            let grad = orders.reference.tensor(grad);
            if grad.values.iter().any(|value| *value != 0.0 && value.is_finite()) {
                all.set(all.get() + 1);
                certain.set(certain.get() + usize::from(grad.certain));
            }
        }
        Ok(())
    });
    let (certain, all) = (certain.get(), all.get());
    assert!(all * 2 > tried.get() && certain * 4 > all * 3, "{certain} of {all} in {} programs", tried.get());
}
