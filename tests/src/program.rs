//! Random programs on tensors, as data: what is computed, and what each Function's formulas are.
//!
//! A program says nothing about gradients; the reference and the engines each have their own way to find those. What is
//! done around one, hooks and regions, is in `plan`.

use core::ops::Range;

use gradpact::{DType, GradDType};

/// A program: leaves, steps that each append variables, roots to start backward from.
///
/// Its `Debug` is a listing of it as code.
#[derive(Clone)]
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

impl Program {
    /// The variables that a step appends.
    pub fn variables_of(&self, step: usize) -> Range<usize> {
        let start = self.leaves.len() + self.steps[..step].iter().map(Step::outputs).sum::<usize>();
        start..start + self.steps[step].outputs()
    }
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
    pub seed: Option<Seed>,
}

/// The gradient that a root starts with.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Its dtype.
    pub dtype: DType,
    /// Rounded to the dtype when used.
    pub values: Vec<f64>,
    /// Whether it is a leaf, so that gradients can be differentiated with respect to it.
    pub tracked: bool,
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

impl Step {
    /// How many variables it appends.
    pub fn outputs(&self) -> usize {
        if let Self::Custom(custom) = self { custom.outputs.len() } else { 1 }
    }
}

/// A Function: its outputs are weighted sums of its inputs (or of their squares), and its gradients weighted sums of what
/// it receives (by weights of their own: a contract does not ask whether formulas are right).
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
    /// Whether it saves its inputs and outputs, and expects them back, also where no formula needs them.
    pub saves: bool,
    /// How backward computes.
    pub formula: Formula,
    /// What backward returns, for each input.
    pub returns: Vec<Returned>,
    /// Whether backward returns a `None` too many.
    pub returns_too_many: bool,
}

/// How the backward of a Function computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// From the values alone, so that what it returns is a constant to a second backward.
    Values,
    /// With recorded operations: each weighted gradient, times one of the saved tensors.
    Recorded(Factor),
}

/// What a recorded formula multiplies a gradient by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Nothing.
    One,
    /// The input whose gradient it computes. The outputs are sums of squares then.
    Input,
    /// The output whose gradient it multiplies.
    Output,
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
    /// In a recorded formula the sum gets its dtype by a Function inside backward, which declares this for its own
    /// gradient; by a conversion if `None`.
    pub through: Option<GradDType>,
}

impl Custom {
    /// Whether it saves its inputs and outputs.
    pub fn saves(&self) -> bool {
        self.saves || matches!(self.formula, Formula::Recorded(Factor::Input | Factor::Output))
    }

    /// The position of the first input that is given.
    pub fn first_input(&self) -> Option<usize> {
        self.inputs.iter().position(Option::is_some)
    }

    /// The Function inside backward that the gradient of an input goes through, if there is one: an identity.
    pub fn inside_backward(&self, position: usize) -> Option<Self> {
        let returned = &self.returns[position];
        let (dtype, declared) = (returned.dtype?, returned.through?);
        let weights = [1.0; 3];
        Some(Self {
            inputs: vec![Some(Pick(0))],
            outputs: vec![Output { dtype, declared, differentiable: true, weights, converts_input: true }],
            declares: true,
            materializes: true,
            saves: false,
            formula: Formula::Recorded(Factor::One),
            returns: vec![Returned { dtype: declared.dtype().or(Some(dtype)), weights, through: None }],
            returns_too_many: false,
        })
    }

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
            _ if self.formula == Formula::Recorded(Factor::Input) => {
                let squared = |values: &Vec<f64>| values.iter().map(|value| value * value).collect();
                let squares: Vec<_> = inputs.iter().map(|input| input.as_ref().map(squared)).collect();
                weighted(&output.weights, &squares, length)
            }
            _ => weighted(&output.weights, inputs, length),
        }
    }

    /// The gradient of an input from values alone, before it is rounded to the dtype it is returned in. `None` if nothing
    /// arrived.
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
