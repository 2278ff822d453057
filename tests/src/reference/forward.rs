//! The forward half of the reference.

use std::collections::{BTreeMap, BTreeSet};

use gradpact::{GradDType, Source};

use super::{Reference, Tensor, Work};
use crate::log::Label;
use crate::plan::{Region, kept_in};
use crate::program::{LeafGrad, Pick, Program, Step};

impl<'p> Reference<'p> {
    /// Runs a program forward.
    pub fn new(program: &'p Program) -> Self {
        Self::inside(program, &[])
    }

    /// Runs a program forward, its steps in regions.
    pub fn inside(program: &'p Program, regions: &[Region]) -> Self {
        let steps = program.steps.len();
        let mut reference = Self {
            program,
            kept_in: (0..steps).map(|step| kept_in(step, steps, regions)).collect(),
            tensors: Vec::new(),
            variables: Vec::new(),
            nodes: Vec::new(),
            roots: Vec::new(),
            recording: true,
            passes: 0,
            hooks: Vec::new(),
            retained: BTreeSet::new(),
            accumulated: BTreeMap::new(),
        };
        for leaf in &program.leaves {
            let contract = leaf.tracked.map(|tracked| match tracked {
                LeafGrad::Default => (GradDType::Exactly(leaf.dtype), Source::Default),
                LeafGrad::Declared(grad_dtype) => (grad_dtype, Source::Declared),
            });
            let leaf = reference.add_tensor(leaf.dtype, &leaf.values, contract);
            reference.variables.push(leaf);
        }
        for step in 0..steps {
            let outputs = reference.step(step);
            reference.variables.extend(outputs);
        }
        reference.seed();
        reference
    }

    fn seed(&mut self) {
        let tracked = self.tracked();
        for root in self.program.roots.iter().filter(|_| !tracked.is_empty()) {
            let tensor = self.variables[tracked[root.at.of(tracked.len())]];
            let seed = match &root.seed {
                Some(seed) => {
                    let own = (GradDType::Exactly(seed.dtype), Source::Default);
                    self.add_tensor(seed.dtype, &seed.values, seed.tracked.then_some(own))
                }
                None => self.constant(self.tensors[tensor].zero_dtype(), &[1.0]),
            };
            self.roots.push((tensor, seed));
        }
    }

    fn picked(&self, pick: Pick) -> usize {
        self.variables[pick.of(self.variables.len())]
    }

    /// The tensors that a step computes.
    fn step(&mut self, step: usize) -> Vec<usize> {
        let kept_in = self.kept_in[step];
        vec![match &self.program.steps[step] {
            Step::Custom(custom) => {
                let inputs = custom.inputs.iter().map(|input| input.map(|pick| self.picked(pick))).collect();
                return self.custom(custom, Label::of_step(step), inputs, kept_in);
            }
            &Step::Add(a, b) => self.add(self.picked(a), self.picked(b)),
            &Step::Mul(a, b) => self.mul(self.picked(a), self.picked(b), kept_in),
            &Step::Cast(x, dtype) => self.cast(self.picked(x), dtype),
            &Step::Redeclare(x, grad_dtype) => {
                let x = self.picked(x);
                let Tensor { dtype, values, contract, .. } = self.tensors[x].clone();
                let declared = contract.map(|_| (grad_dtype, Source::Declared));
                let output = self.add_tensor(dtype, &values, declared);
                self.record(Work::Redeclare, vec![Some(x)], vec![output]);
                output
            }
            &Step::Detach(x) => {
                let Tensor { dtype, values, .. } = self.tensors[self.picked(x)].clone();
                self.constant(dtype, &values)
            }
        }]
    }
}
