//! The chain rule without a graph: a gradient is the sum over all paths of the products along them.

use gradpact::{BackwardOptions, DynTensor, backward};
use gradpact_tests::lab::{Lab, Run};
use gradpact_tests::log::Seen;
use gradpact_tests::program::{Custom, Factor, Formula, Pick, Program, Step};
use proptest::prop_assert;

use crate::strategy::exact_program;
use crate::{Verdict, leaf_grad};

super::on_every_engine! {
    the_gradient_of_a_leaf_is_the_sum_over_all_paths(21, 1000, exact_program()) => sum_over_paths;
}

/// The largest integer up to which an `f64` counts exactly.
const LIMIT: i128 = 1 << 53;

/// Walks from roots to leaves along every path. Knows of each variable which step made it.
struct Walk<'p> {
    program: &'p Program,
    /// Integer values of all variables.
    values: Vec<Vec<i128>>,
    /// The step and the output that a variable is; none for leaves and constants.
    makers: Vec<Option<(usize, usize)>>,
    /// How many variables there were when a step ran.
    counts: Vec<usize>,
    tracked: Vec<bool>,
    /// By leaf: the sum so far, if a path led there.
    sums: Vec<Option<Vec<i128>>>,
    /// By magnitude: what the sums would be if nothing cancelled.
    largest: i128,
}

impl Walk<'_> {
    /// One way on from a variable, with the product so far.
    fn from(&mut self, variable: usize, product: &[i128]) {
        self.largest = product.iter().fold(self.largest, |largest, factor| largest + factor.abs());
        if !self.tracked[variable] || self.largest > LIMIT {
            return;
        }
        let Some((step, output)) = self.makers[variable] else {
            let sum = self.sums[variable].get_or_insert_with(|| vec![0; product.len()]);
            sum.iter_mut().zip(product).for_each(|(sum, factor)| *sum += factor);
            return;
        };
        let at = |pick: Pick| pick.of(self.counts[step]);
        match &self.program.steps[step] {
            Step::Custom(custom) => self.through(custom, step, output, product),
            &Step::Add(a, b) => {
                let (a, b) = (at(a), at(b));
                self.from(a, product);
                self.from(b, product);
            }
            &Step::Mul(a, b) => {
                let (a, b) = (at(a), at(b));
                let times =
                    |other: usize| product.iter().zip(&self.values[other]).map(|(p, v)| p * v).collect();
                let (to_a, to_b): (Vec<_>, Vec<_>) = (times(b), times(a));
                self.from(a, &to_a);
                self.from(b, &to_b);
            }
            &Step::Cast(x, _) | &Step::Redeclare(x, _) => self.from(at(x), product),
            Step::Detach(_) => {}
        }
    }

    fn through(&mut self, custom: &Custom, step: usize, output: usize, product: &[i128]) {
        for (input, returned) in custom.inputs.iter().zip(&custom.returns) {
            if let (Some(pick), Some(_)) = (input, returned.dtype) {
                let weight = returned.weights[output] as i128;
                let input = pick.of(self.counts[step]);
                let factors = match custom.formula {
                    Formula::Recorded(Factor::Input) => Some(&self.values[input]),
                    Formula::Recorded(Factor::Output) => Some(&self.values[self.counts[step] + output]),
                    _ => None,
                };
                let factor = |element: usize| factors.map_or(1, |factors| factors[element]);
                let product: Vec<_> =
                    product.iter().enumerate().map(|(element, p)| p * weight * factor(element)).collect();
                self.from(input, &product);
            }
        }
    }
}

fn sum_over_paths<E: Lab>(program: &Program) -> Verdict {
    let run = Run::<E>::new(program)?;
    let integers =
        |tensor| E::values(tensor).map(|values| values.iter().map(|&value| value as i128).collect());
    let mut walk = Walk {
        program,
        values: run.variables.iter().map(integers).collect::<Result<_, _>>()?,
        makers: vec![None; program.leaves.len()],
        counts: Vec::new(),
        tracked: run.variables.iter().map(DynTensor::requires_grad).collect(),
        sums: vec![None; program.leaves.len()],
        largest: 0,
    };
    for (step, content) in program.steps.iter().enumerate() {
        walk.counts.push(walk.makers.len());
        let outputs = if let Step::Custom(custom) = content { custom.outputs.len() } else { 1 };
        walk.makers.extend((0..outputs).map(|output| Some((step, output))));
    }
    let tracked: Vec<usize> = (0..walk.tracked.len()).filter(|&variable| walk.tracked[variable]).collect();
    for root in program.roots.iter().filter(|_| !tracked.is_empty()) {
        let seed = root.seed.as_ref().map_or(vec![1.0], |seed| seed.values.clone());
        let seed: Vec<_> = seed.iter().map(|&value| value as i128).collect();
        walk.from(tracked[root.at.of(tracked.len())], &seed);
    }
    backward(&run.roots(), BackwardOptions::new())?;
    for (leaf, sum) in run.variables.iter().zip(&walk.sums).filter(|_| walk.largest <= LIMIT) {
        let got: Seen = leaf_grad(leaf)?;
        let got = got.map(|(_, values)| values.iter().map(|&value| value as i128).collect::<Vec<_>>());
        // A sum over no path is zero; whether a Function that was told of no gradient returns zeros or none is its affair.
        let zeros = vec![0; program.length];
        let (got, sum) = (got.as_ref().unwrap_or(&zeros), sum.as_ref().unwrap_or(&zeros));
        prop_assert!(got == sum, "{got:?}, sum over paths {sum:?}");
    }
    Ok(())
}
