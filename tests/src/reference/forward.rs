//! The forward half of the reference: values, and which gradient dtype each tensor has.

use std::cell::RefCell;
use std::collections::HashMap;

use gradpact::{DType, GradDType, Source};

use super::{Grad, Node, Reference, Tensor, elementwise, product};
use crate::format::{narrowest_float_for, round};
use crate::program::{Custom, LeafGrad, Pick, Program, Step};

impl<'p> Reference<'p> {
    /// Runs a program forward.
    pub fn new(program: &'p Program) -> Self {
        let (tensors, variables, nodes) = (Vec::new(), Vec::new(), Vec::new());
        let (gradients, visited) = (RefCell::new(HashMap::new()), RefCell::new(HashMap::new()));
        let mut reference =
            Self { program, tensors, variables, nodes, seeds: Vec::new(), gradients, visited };
        for leaf in &program.leaves {
            let contract = leaf.tracked.map(|tracked| match tracked {
                LeafGrad::Default => (GradDType::Exactly(leaf.dtype), Source::Default),
                LeafGrad::Declared(grad_dtype) => (grad_dtype, Source::Declared),
            });
            let id = reference.tensor(leaf.dtype, &leaf.values, contract);
            reference.variables.push(id);
        }
        for (step, content) in program.steps.iter().enumerate() {
            let outputs = reference.step(step, content);
            reference.variables.extend(outputs);
        }
        reference.seed();
        reference
    }

    fn seed(&mut self) {
        let tracked = self.tracked();
        for root in self.program.roots.iter().filter(|_| !tracked.is_empty()) {
            let tensor = self.variables[tracked[root.at.of(tracked.len())]];
            let (dtype, values) = root.seed.clone().unwrap_or((self.tensors[tensor].zero_dtype(), vec![1.0]));
            let values = values.iter().map(|&value| round(dtype, value)).collect();
            self.seeds.push((tensor, Grad { dtype, values, certain: true }));
        }
    }

    fn tensor(&mut self, dtype: DType, values: &[f64], contract: Option<(GradDType, Source)>) -> usize {
        let values = values.iter().map(|&value| round(dtype, value)).collect();
        self.tensors.push(Tensor { dtype, values, contract });
        self.tensors.len() - 1
    }

    fn picked(&self, pick: Pick) -> usize {
        self.variables[pick.of(self.variables.len())]
    }

    /// The tensors that a step computes.
    fn step(&mut self, step: usize, content: &Step) -> Vec<usize> {
        match content {
            Step::Custom(custom) => self.custom(step, custom),
            &Step::Add(a, b) => {
                let (a, b) = (self.picked(a), self.picked(b));
                let (dtype, values) = elementwise(self.stored(a), self.stored(b), |a, b| a + b);
                self.built_in(step, &[a, b], dtype, &values)
            }
            &Step::Mul(a, b) => {
                let (a, b) = (self.picked(a), self.picked(b));
                let (dtype, values) = product(self.stored(a), self.stored(b));
                self.built_in(step, &[a, b], dtype, &values)
            }
            &Step::Cast(x, dtype) => {
                let x = self.picked(x);
                let Tensor { dtype: before, values, .. } = self.tensors[x].clone();
                match (dtype == before, dtype.is_float()) {
                    (true, _) => vec![x],
                    (false, true) => self.built_in(step, &[x], dtype, &values),
                    (false, false) => vec![self.tensor(dtype, &values, None)],
                }
            }
            &Step::Redeclare(x, grad_dtype) => {
                let x = self.picked(x);
                let Tensor { dtype, values, contract } = self.tensors[x].clone();
                let declared = contract.map(|_| (grad_dtype, Source::Declared));
                let output = self.tensor(dtype, &values, declared);
                self.record(step, vec![Some(x)], vec![output])
            }
            &Step::Detach(x) => {
                let Tensor { dtype, values, .. } = self.tensors[self.picked(x)].clone();
                vec![self.tensor(dtype, &values, None)]
            }
        }
    }

    fn stored(&self, tensor: usize) -> (DType, &[f64]) {
        (self.tensors[tensor].dtype, &self.tensors[tensor].values)
    }

    /// An operation that carries the gradient dtype of its inputs: any if one takes any, else wide enough for all.
    fn built_in(&mut self, step: usize, inputs: &[usize], dtype: DType, values: &[f64]) -> Vec<usize> {
        let contracts = inputs.iter().filter_map(|&input| self.tensors[input].contract);
        let grad_dtypes: Vec<GradDType> = contracts.map(|(grad_dtype, _)| grad_dtype).collect();
        let mut floats: Vec<DType> = grad_dtypes.iter().filter_map(|grad_dtype| grad_dtype.dtype()).collect();
        floats.extend(dtype.is_float().then_some(dtype));
        let carried = if grad_dtypes.contains(&GradDType::Any) {
            Some(GradDType::Any)
        } else {
            narrowest_float_for(&floats).map(GradDType::Exactly)
        };
        let contract = carried.filter(|_| !grad_dtypes.is_empty()).map(|carried| (carried, Source::Carried));
        let output = self.tensor(dtype, values, contract);
        self.record(step, inputs.iter().copied().map(Some).collect(), vec![output])
    }

    fn custom(&mut self, step: usize, custom: &Custom) -> Vec<usize> {
        let inputs: Vec<_> = custom.inputs.iter().map(|input| input.map(|pick| self.picked(pick))).collect();
        let values: Vec<_> =
            inputs.iter().map(|input| input.map(|input| self.tensors[input].values.clone())).collect();
        let tracked = inputs.iter().flatten().any(|&input| self.tensors[input].contract.is_some());
        let outputs = (0..custom.outputs.len()).map(|position| {
            let dtype = custom.outputs[position].dtype;
            let contract = contract_of(custom, position).filter(|_| tracked);
            self.tensor(dtype, &custom.forward(position, &values, self.program.length), contract)
        });
        let outputs = outputs.collect();
        self.record(step, inputs, outputs)
    }

    fn record(&mut self, step: usize, inputs: Vec<Option<usize>>, outputs: Vec<usize>) -> Vec<usize> {
        self.nodes.push(Node { step, inputs, outputs: outputs.clone() });
        outputs
    }
}

/// What a Function's declarations, or their absence, say for one output.
fn contract_of(custom: &Custom, position: usize) -> Option<(GradDType, Source)> {
    let output = &custom.outputs[position];
    match (output.differentiable, custom.declares, output.declared) {
        (false, ..) => None,
        (true, true, GradDType::Exactly(dtype)) => Some((GradDType::Exactly(dtype), Source::Declared)),
        (true, true, GradDType::Any) => output.dtype.is_float().then_some((GradDType::Any, Source::Declared)),
        (true, false, _) => {
            output.dtype.is_float().then_some((GradDType::Exactly(output.dtype), Source::Default))
        }
    }
}
