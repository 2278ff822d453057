//! Derivatives up to the third without a graph: programs whose formulas are right are run forward on numbers that carry
//! their derivatives in three directions. In small integers, so that nothing is rounded.

use gradpact::{BackwardOptions, DType, DynTensor, grad};
use gradpact_tests::lab::{Lab, Run};
use gradpact_tests::program::{Custom, Factor, Formula, Pick, Program, Step};
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::prop_assert_eq;

use crate::Verdict;
use crate::strategy::exact_program;

super::on_every_engine! {
    derivatives_of_right_formulas_are_right_up_to_the_third(81, 700, case()) => three_orders;
}

/// A program, and two directions: a number for each element of each leaf.
type Case = (Program, [Vec<i64>; 2]);

fn case() -> impl Strategy<Value = Case> {
    let direction = || vec(-2..=2_i64, 12);
    // A zero is a dead end for products.
    let nonzero = |program: Program| {
        let mut program = right(program);
        let values = program.leaves.iter_mut().flat_map(|leaf| &mut leaf.values);
        values.filter(|value| **value == 0.0).for_each(|value| *value = 2.0);
        program
    };
    (exact_program().prop_map(nonzero), [direction(), direction()])
}

/// The program with formulas that are the derivatives of what its Functions compute; with more squares and fewer zeros, so
/// that there is something to differentiate three times.
fn right(mut program: Program) -> Program {
    for step in &mut program.steps {
        let Step::Custom(custom) = step else { continue };
        let squares = custom.formula != Formula::Recorded(Factor::One);
        custom.formula = Formula::Recorded(if squares { Factor::Input } else { Factor::One });
        let weights = custom.outputs.iter_mut().flat_map(|output| &mut output.weights);
        weights.filter(|weight| **weight == 0.0).for_each(|weight| *weight = 1.0);
        for (position, returned) in custom.returns.iter_mut().enumerate() {
            for (weight, output) in returned.weights.iter_mut().zip(&mut custom.outputs) {
                output.converts_input = false;
                *weight = output.weights[position] * if squares { 2.0 } else { 1.0 };
            }
        }
    }
    program
}

/// A number and its derivatives in three directions: the coefficient of `ε₁ε₃` is at `0b101`.
#[derive(Clone, Copy, Debug, Default)]
struct Jet([i128; 8]);

impl Jet {
    fn constant(value: i128) -> Self {
        Self([value, 0, 0, 0, 0, 0, 0, 0])
    }

    fn plus(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a = a.saturating_add(b));
        self
    }

    /// The product, where every `ε` squared is nothing.
    fn times(self, other: Self) -> Self {
        let mut product = Self::default();
        for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a & b == 0) {
            let term = self.0[a].saturating_mul(other.0[b]);
            product.0[a | b] = product.0[a | b].saturating_add(term);
        }
        product
    }
}

/// A program run forward on jets.
struct Jets<'c> {
    program: &'c Program,
    /// Whether to compute how large everything could be if nothing cancelled, instead of what it is.
    magnitudes: bool,
    /// By variable, then by element.
    variables: Vec<Vec<Jet>>,
}

impl<'c> Jets<'c> {
    fn number(&self, value: f64) -> Jet {
        let value = value as i128;
        Jet::constant(if self.magnitudes { value.abs().max(1) } else { value })
    }

    /// The jet of what the roots and their seeds add up to, where `slopes` says for each element of each leaf how it moves
    /// in each direction.
    fn run(program: &'c Program, magnitudes: bool, slopes: impl Fn(usize, usize) -> [i128; 3]) -> Jet {
        let mut jets = Self { program, magnitudes, variables: Vec::new() };
        for (position, leaf) in program.leaves.iter().enumerate() {
            let element = |(element, value): (usize, &f64)| {
                let mut jet = jets.number(*value);
                if leaf.tracked.is_some() {
                    [jet.0[1], jet.0[2], jet.0[4]] = slopes(position, element);
                }
                jet
            };
            let elements = leaf.values.iter().enumerate().map(element).collect();
            jets.variables.push(elements);
        }
        let mut tracked: Vec<bool> = program.leaves.iter().map(|leaf| leaf.tracked.is_some()).collect();
        for step in &program.steps {
            let outputs = jets.step(step, &mut tracked);
            jets.variables.extend(outputs);
        }
        jets.weighed(&tracked)
    }

    fn weighed(&self, tracked: &[bool]) -> Jet {
        let tracked: Vec<usize> = (0..tracked.len()).filter(|&variable| tracked[variable]).collect();
        let mut total = Jet::default();
        for root in self.program.roots.iter().filter(|_| !tracked.is_empty()) {
            let seed = root.seed.as_ref().map_or(vec![1.0], |seed| seed.values.clone());
            for (jet, seed) in self.variables[tracked[root.at.of(tracked.len())]].iter().zip(seed) {
                total = total.plus(jet.times(self.number(seed)));
            }
        }
        total
    }

    /// The variables of a step; of each is added whether it is tracked.
    fn step(&self, step: &Step, tracked: &mut Vec<bool>) -> Vec<Vec<Jet>> {
        let at = |pick: Pick| pick.of(self.variables.len());
        let both = |a: Pick, b: Pick, f: fn(Jet, Jet) -> Jet| {
            let pairs = self.variables[at(a)].iter().zip(&self.variables[at(b)]);
            vec![pairs.map(|(&a, &b)| f(a, b)).collect()]
        };
        match step {
            Step::Custom(custom) => self.custom(custom, tracked),
            &Step::Add(a, b) | &Step::Mul(a, b) => {
                tracked.push(tracked[at(a)] || tracked[at(b)]);
                both(a, b, if matches!(step, Step::Add(..)) { Jet::plus } else { Jet::times })
            }
            &Step::Cast(x, _) | &Step::Redeclare(x, _) => {
                tracked.push(tracked[at(x)]);
                vec![self.variables[at(x)].clone()]
            }
            &Step::Detach(x) => {
                tracked.push(false);
                vec![self.variables[at(x)].iter().map(|jet| Jet::constant(jet.0[0])).collect()]
            }
        }
    }

    fn custom(&self, custom: &Custom, tracked: &mut Vec<bool>) -> Vec<Vec<Jet>> {
        let picked: Vec<_> =
            custom.inputs.iter().map(|pick| pick.map(|pick| pick.of(self.variables.len()))).collect();
        let any = picked.iter().flatten().any(|&input| tracked[input]);
        let mut outputs = Vec::new();
        for output in &custom.outputs {
            let mut sum = vec![Jet::default(); self.program.length];
            for ((input, returned), weight) in picked.iter().zip(&custom.returns).zip(output.weights) {
                let Some(input) = *input else { continue };
                for (sum, &jet) in sum.iter_mut().zip(&self.variables[input]) {
                    // An input whose gradient is not returned is a constant.
                    let flows = returned.dtype.is_some() && output.differentiable;
                    let jet = if flows { jet } else { Jet::constant(jet.0[0]) };
                    let squares = custom.formula == Formula::Recorded(Factor::Input);
                    let term = if squares { jet.times(jet) } else { jet };
                    *sum = sum.plus(term.times(self.number(weight)));
                }
            }
            tracked.push(any && output.differentiable);
            outputs.push(sum);
        }
        outputs
    }
}

/// Whether all that a backward adds up stays among the integers that an `f64` counts exactly.
fn is_exact(program: &Program) -> bool {
    let largest = Jets::run(program, true, |_, _| [2, 2, 1]);
    largest.0.iter().all(|coefficient| coefficient.saturating_mul(12) < 1 << 53)
}

fn three_orders<E: Lab>((program, directions): &Case) -> Verdict {
    if !is_exact(program) {
        return Ok(());
    }
    let run = Run::<E>::new(program)?;
    let leaves: Vec<usize> =
        (0..program.leaves.len()).filter(|&leaf| program.leaves[leaf].tracked.is_some()).collect();
    let inputs: Vec<_> = leaves.iter().map(|&leaf| &run.variables[leaf]).collect();
    let slope = |direction: usize, leaf: usize, element: usize| directions[direction][leaf * 3 + element];
    let mut roots = run.roots.clone();
    for (order, coefficient) in [0b100, 0b101, 0b111].into_iter().enumerate() {
        let pairs: Vec<_> = roots.iter().map(|(root, seed)| (root, seed.as_ref())).collect();
        run.begin_pass();
        let found = grad(&pairs, &inputs, BackwardOptions::new().create_graph().allow_unused())?;
        for (&leaf, grad) in leaves.iter().zip(&found) {
            // What no path leads to, is not there or zero.
            let got = grad.as_ref().map_or(Ok(vec![0.0; program.length]), E::values)?;
            let expected = (0..program.length).map(|element| {
                let jet = Jets::run(program, false, |l, e| {
                    let moves = i128::from((l, e) == (leaf, element));
                    [i128::from(slope(0, l, e)), i128::from(slope(1, l, e)), moves]
                });
                jet.0[coefficient]
            });
            let expected: Vec<_> = expected.collect();
            let got: Vec<_> = got.iter().map(|&value| value as i128).collect();
            prop_assert_eq!(got, expected, "derivative {} of leaf {}", order + 1, leaf);
        }
        roots = Vec::new();
        for (&leaf, grad) in leaves.iter().zip(found) {
            let Some(root) = grad.filter(DynTensor::requires_grad) else { continue };
            let direction: Vec<_> =
                (0..program.length).map(|element| slope(order.min(1), leaf, element) as f64).collect();
            roots.push((root, Some(E::tensor(DType::F64, &direction)?)));
        }
    }
    Ok(())
}

#[test]
fn many_programs_are_exact_and_have_third_derivatives() {
    let counts = std::cell::Cell::new([0; 3]);
    crate::check(81, 500, case(), |(program, _)| {
        let mut counted = counts.get();
        let jet = Jets::run(&program, false, |_, _| [1, 1, 1]);
        let exact = is_exact(&program);
        counted[0] += 1;
        counted[1] += usize::from(exact);
        counted[2] += usize::from(exact && jet.0[7] != 0);
        counts.set(counted);
        Ok(())
    });
    let [tried, exact, third] = counts.get();
    assert!(
        exact * 2 > tried && third * 10 > tried,
        "{exact} exact, {third} with a third derivative, of {tried}"
    );
}
