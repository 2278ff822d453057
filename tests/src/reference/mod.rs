//! What the contract says a program's gradients are, by plain recursion: the gradient of a tensor is asked for, and asks
//! for those of the outputs it went into.
//!
//! Independent of the runtime: of that only the names of dtypes are used. Slow, and as deep as the program.

mod forward;
mod sum;

pub use sum::{Grad, combine};

use std::cell::RefCell;
use std::collections::HashMap;

use gradpact::{DType, GradDType, Source};

use crate::format::{meeting, round, wide};
use crate::program::{Custom, Program, Step};

/// What is known of a tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its storage dtype.
    pub dtype: DType,
    /// What it stores.
    pub values: Vec<f64>,
    /// Its gradient dtype and who said so; `None` if gradients of it are not recorded.
    pub contract: Option<(GradDType, Source)>,
}

impl Tensor {
    /// The gradient dtype that it shows: of an untracked one the default.
    pub fn shown_contract(&self) -> Option<(GradDType, Source)> {
        let own = (GradDType::Exactly(self.dtype), Source::Default);
        self.contract.or(self.dtype.is_float().then_some(own))
    }

    /// The dtype of zeros, or of a one, in the place of its gradient.
    pub fn zero_dtype(&self) -> DType {
        match self.contract {
            Some((GradDType::Exactly(dtype), _)) => dtype,
            Some((GradDType::Any, _)) if !self.dtype.is_float() => DType::F32,
            _ => self.dtype,
        }
    }
}

/// A recorded step.
#[derive(Debug)]
struct Node {
    step: usize,
    inputs: Vec<Option<usize>>,
    outputs: Vec<usize>,
}

/// A program, run forward.
#[derive(Debug)]
pub struct Reference<'p> {
    program: &'p Program,
    tensors: Vec<Tensor>,
    variables: Vec<usize>,
    nodes: Vec<Node>,
    seeds: Vec<(usize, Grad)>,
    gradients: RefCell<HashMap<usize, Option<Grad>>>,
    visited: RefCell<HashMap<usize, bool>>,
}

/// What the backward of a step was given: a gradient for each output.
pub type Received = Vec<Option<Grad>>;

impl Reference<'_> {
    /// The tensors that the variables stand for.
    pub fn variables(&self) -> impl Iterator<Item = &Tensor> {
        self.variables.iter().map(|&tensor| &self.tensors[tensor])
    }

    /// The variables that gradients are recorded of.
    pub fn tracked(&self) -> Vec<usize> {
        let tracked = |&variable: &usize| self.tensors[self.variables[variable]].contract.is_some();
        (0..self.variables.len()).filter(tracked).collect()
    }

    /// The gradient of a variable, with respect to what the roots are seeded with.
    pub fn gradient(&self, variable: usize) -> Option<Grad> {
        self.gradient_of(self.variables[variable])
    }

    /// What each step's backward receives, for the steps that it runs for, last step first.
    pub fn received(&self) -> Vec<(usize, Received)> {
        let custom = |node: &&Node| matches!(self.program.steps[node.step], Step::Custom(_));
        let nodes = self.nodes.iter().rev().filter(custom);
        nodes.filter_map(|node| Some((node.step, self.received_by(node)?))).collect()
    }

    /// The sum of what arrives at a tensor: seeds, and from each place it was used in.
    fn gradient_of(&self, tensor: usize) -> Option<Grad> {
        if let Some(known) = self.gradients.borrow().get(&tensor) {
            return known.clone();
        }
        let (grad_dtype, _) = self.tensors[tensor].contract?;
        let seeds = self.seeds.iter().filter(|(root, _)| *root == tensor).map(|(_, seed)| seed.clone());
        let mut arriving: Vec<Grad> = seeds.collect();
        for node in self.nodes.iter().rev() {
            for (position, _) in node.inputs.iter().enumerate().filter(|(_, input)| **input == Some(tensor)) {
                let received = self.received_by(node);
                arriving.extend(received.and_then(|received| self.returned(node, position, &received)));
            }
        }
        let admitted = arriving.into_iter().map(|grad| grad.admitted(grad_dtype)).collect();
        let gradient = combine(admitted, grad_dtype);
        self.gradients.borrow_mut().insert(tensor, gradient.clone());
        gradient
    }

    /// Whether a node's backward runs: a root is one of its outputs, or went into a node that runs, whether that one
    /// returns a gradient for it or none.
    fn is_visited(&self, node: &Node) -> bool {
        if let Some(&known) = self.visited.borrow().get(&node.step) {
            return known;
        }
        let reached = |output: &usize| {
            let is_root = self.seeds.iter().any(|(root, _)| root == output);
            let mut uses = self.nodes.iter().filter(|other| other.inputs.contains(&Some(*output)));
            self.tensors[*output].contract.is_some() && (is_root || uses.any(|other| self.is_visited(other)))
        };
        let visited = node.outputs.iter().any(reached);
        self.visited.borrow_mut().insert(node.step, visited);
        visited
    }

    /// The gradients of a node's outputs; `None` if it does not run.
    fn received_by(&self, node: &Node) -> Option<Received> {
        if !self.is_visited(node) {
            return None;
        }
        let mut received: Received = node.outputs.iter().map(|&output| self.gradient_of(output)).collect();
        if let Step::Custom(Custom { materializes: true, .. }) = &self.program.steps[node.step] {
            for (grad, &output) in received.iter_mut().zip(&node.outputs) {
                let dtype = self.tensors[output].zero_dtype();
                grad.get_or_insert_with(|| Grad {
                    dtype,
                    values: vec![0.0; self.program.length],
                    certain: true,
                });
            }
        }
        Some(received)
    }

    /// What a node's backward returns for the input at `position`.
    fn returned(&self, node: &Node, position: usize, received: &Received) -> Option<Grad> {
        let first = || received[0].clone();
        match &self.program.steps[node.step] {
            Step::Custom(custom) => self.returned_by(custom, position, received),
            Step::Mul(..) => {
                let other = node.inputs[1 - position].map(|other| &self.tensors[other])?;
                let grad = first()?;
                let (dtype, values) = product((grad.dtype, &grad.values), (other.dtype, &other.values));
                Some(Grad { dtype, values, ..grad })
            }
            Step::Add(..) | Step::Cast(..) | Step::Redeclare(..) => first(),
            Step::Detach(_) => None,
        }
    }

    fn returned_by(&self, custom: &Custom, position: usize, received: &Received) -> Option<Grad> {
        let dtype = custom.returns[position].dtype?;
        let grads: Vec<_> = received.iter().map(|grad| Some(grad.as_ref()?.values.clone())).collect();
        let values = custom.backward(position, &grads, self.program.length)?;
        let certain = received.iter().flatten().all(|grad| grad.certain);
        Some(Grad { dtype, values: values.iter().map(|&value| round(dtype, value)).collect(), certain })
    }
}

/// `a · b` in the dtype that both meet in, computed wide and rounded once.
fn product(a: (DType, &[f64]), b: (DType, &[f64])) -> (DType, Vec<f64>) {
    elementwise(a, b, |a, b| a * b)
}

fn elementwise(a: (DType, &[f64]), b: (DType, &[f64]), f: fn(f64, f64) -> f64) -> (DType, Vec<f64>) {
    let dtype = meeting(a.0, b.0);
    let pairs = a.1.iter().zip(b.1);
    (dtype, pairs.map(|(&a, &b)| round(dtype, round(wide(dtype), f(a, b)))).collect())
}
