//! The operations that forwards and backwards are made of: values, and which gradient dtype each result has.

use gradpact::{DType, GradDType, Source};

use super::sum::total;
use super::{Node, Reference, Tensor, Work};
use crate::format::{kept, meeting, narrowest_float_for, round, wide};
use crate::log::Label;
use crate::program::{Custom, Factor, Formula};

impl Reference<'_> {
    /// `a + b`.
    pub(super) fn add(&mut self, a: usize, b: usize) -> usize {
        self.elementwise(Work::Add, a, b, |a, b| a + b)
    }

    /// `a · b`.
    pub(super) fn mul(&mut self, a: usize, b: usize, kept_in: Option<DType>) -> usize {
        let product = self.elementwise(Work::Mul, a, b, |a, b| a * b);
        if let Some(node) = self.tensors[product].maker {
            self.nodes[node].kept_in = kept_in;
        }
        product
    }

    /// In the dtype that both meet in, to which integers are converted first; computed wide and rounded once.
    fn elementwise(&mut self, work: Work, a: usize, b: usize, f: fn(f64, f64) -> f64) -> usize {
        let (lhs, rhs) = (&self.tensors[a], &self.tensors[b]);
        let dtype = meeting(lhs.dtype, rhs.dtype);
        let pairs = lhs.values.iter().zip(&rhs.values);
        let values: Vec<_> =
            pairs.map(|(&a, &b)| round(wide(dtype), f(round(dtype, a), round(dtype, b)))).collect();
        self.built_in(work, vec![a, b], dtype, dtype, &values)
    }

    /// In its own dtype the tensor itself. A conversion to an integer has no gradient.
    pub(super) fn cast(&mut self, x: usize, dtype: DType) -> usize {
        let Tensor { dtype: before, values, .. } = self.tensors[x].clone();
        match (dtype == before, dtype.is_float()) {
            (true, _) => x,
            (false, true) => self.built_in(Work::Cast, vec![x], dtype, dtype, &values),
            (false, false) => self.constant(dtype, &values),
        }
    }

    /// The sum of admitted gradients, in the gradient dtype or, where any is taken, in the widest that arrived.
    pub(super) fn meet(&mut self, mut terms: Vec<usize>, grad_dtype: GradDType) -> Option<usize> {
        if terms.len() < 2 {
            return terms.pop();
        }
        let tensors: Vec<&Tensor> = terms.iter().map(|&term| &self.tensors[term]).collect();
        let arrived: Vec<DType> = tensors.iter().map(|tensor| tensor.dtype).collect();
        let dtype = grad_dtype.dtype().or_else(|| narrowest_float_for(&arrived))?;
        let (values, certain) = total(&tensors, wide(dtype));
        // It is formed wide, so its own gradient is.
        let sum = self.built_in(Work::Meet, terms, dtype, wide(dtype), &values);
        self.tensors[sum].certain &= certain;
        Some(sum)
    }

    /// The result of an operation that carries the gradient dtype of its inputs: any if one takes any, else wide enough for
    /// all and for what it is formed in.
    fn built_in(
        &mut self,
        work: Work,
        inputs: Vec<usize>,
        dtype: DType,
        formed: DType,
        values: &[f64],
    ) -> usize {
        let contracts = inputs.iter().filter_map(|&input| self.tensors[input].contract);
        let grad_dtypes: Vec<GradDType> = contracts.map(|(grad_dtype, _)| grad_dtype).collect();
        let mut floats: Vec<DType> = grad_dtypes.iter().filter_map(|grad_dtype| grad_dtype.dtype()).collect();
        floats.extend(formed.is_float().then_some(formed));
        let carried = if grad_dtypes.contains(&GradDType::Any) {
            Some(GradDType::Any)
        } else {
            narrowest_float_for(&floats).map(GradDType::Exactly)
        };
        let contract = carried.filter(|_| !grad_dtypes.is_empty()).map(|carried| (carried, Source::Carried));
        let output = self.add_tensor(dtype, values, contract);
        self.record(work, inputs.into_iter().map(Some).collect(), vec![output]);
        output
    }

    /// The outputs of a Function.
    pub(super) fn custom(
        &mut self,
        custom: &Custom,
        label: Label,
        inputs: Vec<Option<usize>>,
        kept_in: Option<DType>,
    ) -> Vec<usize> {
        let values: Vec<_> =
            inputs.iter().map(|input| input.map(|input| self.tensors[input].values.clone())).collect();
        let tracked = inputs.iter().flatten().any(|&input| self.tensors[input].contract.is_some());
        let output = |position: usize| {
            let dtype = custom.outputs[position].dtype;
            let contract = contract_of(custom, position).filter(|_| tracked);
            self.add_tensor(dtype, &custom.forward(position, &values, self.program.length), contract)
        };
        let outputs: Vec<_> = (0..custom.outputs.len()).map(output).collect();
        let node = self.record(Work::Custom(Box::new(custom.clone()), label), inputs, outputs.clone());
        if let Some(node) = node {
            self.nodes[node].kept_in = kept_in;
        }
        outputs
    }

    /// Notes what outputs were computed from: always whether they are certain, and where recording is on the rest.
    pub(super) fn record(
        &mut self,
        work: Work,
        inputs: Vec<Option<usize>>,
        outputs: Vec<usize>,
    ) -> Option<usize> {
        let certain = inputs.iter().flatten().all(|&input| self.tensors[input].certain);
        let node = self.recording.then_some(self.nodes.len());
        for &output in &outputs {
            let tensor = &mut self.tensors[output];
            tensor.certain = certain;
            tensor.maker = node;
            tensor.contract = tensor.contract.filter(|_| self.recording);
        }
        if self.recording {
            self.nodes.push(Node { work, inputs, outputs, kept_in: None });
        }
        node
    }

    /// A tensor as a node that saved it gets it back: with what is left of its values, yet the same tensor to gradients.
    pub(super) fn saved(&mut self, node: usize, tensor: usize) -> usize {
        let narrower = self.nodes[node].kept_in;
        let mut copy = self.tensors[tensor].clone();
        copy.values.iter_mut().for_each(|value| *value = kept(narrower, copy.dtype, *value));
        self.tensors.push(copy);
        self.tensors.len() - 1
    }

    /// An output of a Function as it saved it: an input that was returned as it is, is that input.
    fn saved_output(&mut self, node: usize, custom: &Custom, position: usize) -> usize {
        let output = &custom.outputs[position];
        let first = custom.first_input().and_then(|first| self.nodes[node].inputs[first]);
        let returned_as_it_is = |first: &usize| {
            let Tensor { dtype, contract, .. } = self.tensors[*first];
            output.converts_input && contract.is_some() && dtype == output.dtype
        };
        let as_it_is = first.filter(returned_as_it_is).unwrap_or(self.nodes[node].outputs[position]);
        self.saved(node, as_it_is)
    }

    /// What the backward of a Function returns for the input at `position`.
    pub(super) fn formula(
        &mut self,
        node: usize,
        (custom, label): (&Custom, Label),
        position: usize,
        received: &[Option<usize>],
    ) -> Option<usize> {
        let dtype = custom.returns[position].dtype?;
        let input = self.nodes[node].inputs[position]?;
        let Formula::Recorded(factor) = custom.formula else {
            let grads = received.iter().map(|grad| Some(self.tensors[(*grad)?].values.clone()));
            let values = custom.backward(position, &grads.collect::<Vec<_>>(), self.program.length)?;
            let grad = self.constant(dtype, &values);
            self.tensors[grad].certain = received.iter().flatten().all(|&grad| self.tensors[grad].certain);
            return Some(grad);
        };
        let mut sum = None;
        for (output, grad) in received.iter().enumerate() {
            let Some(grad) = *grad else { continue };
            let weights = vec![custom.returns[position].weights[output]; self.program.length];
            let weights = self.constant(self.tensors[grad].dtype, &weights);
            let mut term = self.mul(grad, weights, None);
            let factor = match factor {
                Factor::One => None,
                Factor::Input => Some(self.saved(node, input)),
                Factor::Output => Some(self.saved_output(node, custom, output)),
            };
            if let Some(factor) = factor {
                term = self.mul(term, factor, None);
            }
            sum = Some(if let Some(sum) = sum { self.add(sum, term) } else { term });
        }
        let Some(inside) = custom.inside_backward(position) else { return Some(self.cast(sum?, dtype)) };
        let label = Label { inside: Some(position), pass: self.passes, ..label };
        self.custom(&inside, label, vec![Some(sum?)], None).pop()
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
