//! Random programs on tensors, as data: what is computed, and what each Function's formulas are.
//!
//! A program says nothing about gradients; the reference and the engines each have their own way to find those.

use gradpact::{DType, GradDType};

/// A program: leaves, steps that each append variables, roots to start backward from.
#[derive(Clone, Debug)]
pub struct Program {
    /// How many elements every tensor has.
    pub length: usize,
    /// The first variables.
    pub leaves: Vec<Leaf>,
    /// In order.
    pub steps: Vec<Step>,
    /// Where backward starts, among the tracked variables.
    pub roots: Vec<Root>,
}

/// A tensor that no step computes.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Its storage dtype.
    pub dtype: DType,
    /// Rounded to the dtype when used.
    pub values: Vec<f64>,
    /// `None` for a constant.
    pub tracked: Option<LeafGrad>,
}

/// In which dtype a leaf keeps its gradient.
#[derive(Clone, Copy, Debug)]
pub enum LeafGrad {
    /// In its own.
    Default,
    /// As declared.
    Declared(GradDType),
}

/// Chooses among what there is: 0 is the latest, then backwards, around and around.
#[derive(Clone, Copy, Debug)]
pub struct Pick(pub usize);

impl Pick {
    /// The position that is meant among `count`, which is not zero.
    pub fn of(self, count: usize) -> usize {
        count - 1 - self.0 % count
    }
}

/// Where backward starts, with which gradient.
#[derive(Clone, Debug)]
pub struct Root {
    /// Among the tracked variables.
    pub at: Pick,
    /// `None` is left to the engine, where the tensors have one element.
    pub seed: Option<(DType, Vec<f64>)>,
}

/// One step of a program.
#[derive(Clone, Debug)]
pub enum Step {
    /// A Function with a contract of its own.
    Custom(Custom),
    /// A built-in sum.
    Add(Pick, Pick),
    /// A built-in product.
    Mul(Pick, Pick),
    /// A built-in conversion.
    Cast(Pick, DType),
    /// Another gradient dtype for the same values.
    Redeclare(Pick, GradDType),
    /// The same values as a constant.
    Detach(Pick),
}

/// A Function: its outputs are weighted sums of its inputs, and its gradients weighted sums of what it receives (by
/// weights of their own: a contract does not ask whether formulas are right).
#[derive(Clone, Debug)]
pub struct Custom {
    /// `None` for an input that is not given.
    pub inputs: Vec<Option<Pick>>,
    /// One to three.
    pub outputs: Vec<Output>,
    /// Whether it calls `set_output_grad_dtype`.
    pub declares: bool,
    /// Whether unused outputs have zeros in backward.
    pub materializes: bool,
    /// Whether it saves its inputs and outputs, and expects them back.
    pub saves: bool,
    /// What backward returns, for each input.
    pub returns: Vec<Returned>,
    /// Whether backward returns a `None` too many.
    pub returns_too_many: bool,
}

/// An output of a Function.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its storage dtype.
    pub dtype: DType,
    /// The entry in the declaration, if there is a declaration and the output is differentiable.
    pub declared: GradDType,
    /// Whether it is not marked non-differentiable.
    pub differentiable: bool,
    /// By input.
    pub weights: [f64; 3],
    /// Whether it is the first input converted, instead of a sum.
    pub converts_input: bool,
}

/// A gradient that a Function returns.
#[derive(Clone, Debug)]
pub struct Returned {
    /// In which dtype; `None` returns no gradient.
    pub dtype: Option<DType>,
    /// By output.
    pub weights: [f64; 3],
}

impl Custom {
    /// What is declared for the gradient of an output.
    pub fn declaration(&self, position: usize) -> GradDType {
        let output = &self.outputs[position];
        if output.differentiable { output.declared } else { GradDType::Any }
    }

    /// The values of an output, before they are rounded to its dtype.
    pub fn forward(&self, position: usize, inputs: &[Option<Vec<f64>>], length: usize) -> Vec<f64> {
        let output = &self.outputs[position];
        match inputs.iter().flatten().next() {
            Some(first) if output.converts_input => first.clone(),
            _ => weighted(&output.weights, inputs, length),
        }
    }

    /// The gradient of an input, before it is rounded to the dtype it is returned in. `None` if nothing arrived.
    pub fn backward(&self, position: usize, grads: &[Option<Vec<f64>>], length: usize) -> Option<Vec<f64>> {
        let anything = self.inputs[position].is_some() && grads.iter().any(Option::is_some);
        anything.then(|| weighted(&self.returns[position].weights, grads, length))
    }
}

fn weighted(weights: &[f64; 3], terms: &[Option<Vec<f64>>], length: usize) -> Vec<f64> {
    let mut sum = vec![0.0; length];
    for (weight, term) in weights.iter().zip(terms) {
        for (sum, value) in sum.iter_mut().zip(term.iter().flatten()) {
            *sum += weight * value;
        }
    }
    sum
}
