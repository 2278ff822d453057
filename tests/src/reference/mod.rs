//! What the contract says a program's gradients are, by plain recursion: the gradient of a tensor is asked for, and asks
//! for those of the outputs it went into. A gradient is a tensor with a history like any other, so that gradients of
//! gradients are found in the same way.
//!
//! Independent of the runtime: of that only the names of dtypes are used. Slow, and as deep as the program.

mod forward;
mod operations;
mod pass;
mod sum;

pub use pass::{Conversion, Outcome};

use std::collections::{BTreeMap, BTreeSet};

use gradpact::{DType, GradDType, Source};

use crate::format::round;
use crate::log::Label;
use crate::plan::{Hook, HookKind, Life};
use crate::program::{Custom, Program};

/// What is known of a tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its storage dtype.
    pub dtype: DType,
    /// What it stores.
    pub values: Vec<f64>,
    /// Its gradient dtype and who said so; `None` if gradients of it are not recorded.
    pub contract: Option<(GradDType, Source)>,
    /// Whether the contract settles its values: not if somewhere before it a sum depends on the order of its terms.
    pub certain: bool,
    /// The tensor that it stands for: itself, unless it is a saved one that came back with other values.
    of: usize,
    /// The node that it is an output of.
    maker: Option<usize>,
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

/// What a node does.
#[derive(Clone, Debug)]
pub enum Work {
    /// A Function with a contract of its own.
    Custom(Box<Custom>, Label),
    /// A built-in sum.
    Add,
    /// A built-in product.
    Mul,
    /// A built-in conversion.
    Cast,
    /// Another gradient dtype for the same values.
    Redeclare,
    /// A sum of gradients that met.
    Meet,
}

/// Something that was computed from tensors.
#[derive(Debug)]
struct Node {
    work: Work,
    inputs: Vec<Option<usize>>,
    outputs: Vec<usize>,
    /// In which dtype it keeps what it saves, if not as it is.
    kept_in: Option<DType>,
}

/// A hook, and the tensor it is at.
#[derive(Debug)]
struct Placed {
    number: usize,
    hook: Hook,
    tensor: usize,
}

/// A program, run forward, and what backwards have added to its graph since.
#[derive(Debug)]
pub struct Reference<'p> {
    program: &'p Program,
    /// In which dtype each step keeps what it saves, if not as it is.
    kept_in: Vec<Option<DType>>,
    tensors: Vec<Tensor>,
    variables: Vec<usize>,
    nodes: Vec<Node>,
    roots: Vec<(usize, usize)>,
    /// Whether what is computed now is recorded.
    recording: bool,
    /// How many backwards have begun.
    passes: usize,
    hooks: Vec<Placed>,
    retained: BTreeSet<usize>,
    /// By leaf, or other tensor that `retain_grad` was called on.
    accumulated: BTreeMap<usize, usize>,
}

impl Reference<'_> {
    /// The tensors that the variables stand for.
    pub fn variables(&self) -> impl Iterator<Item = &Tensor> {
        self.variables.iter().map(|&tensor| &self.tensors[tensor])
    }

    /// The tensor that a variable stands for.
    pub fn variable(&self, variable: usize) -> usize {
        self.variables[variable]
    }

    /// What is known of a tensor.
    pub fn tensor(&self, tensor: usize) -> &Tensor {
        &self.tensors[tensor]
    }

    /// A tensor that nothing computed.
    pub fn constant(&mut self, dtype: DType, values: &[f64]) -> usize {
        self.add_tensor(dtype, values, None)
    }

    /// The variables that gradients are recorded of.
    pub fn tracked(&self) -> Vec<usize> {
        let tracked = |&variable: &usize| self.tensors[self.variables[variable]].contract.is_some();
        (0..self.variables.len()).filter(tracked).collect()
    }

    /// The tensors that backward starts at, and their seeds.
    pub fn roots(&self) -> &[(usize, usize)] {
        &self.roots
    }

    /// The gradient that a variable holds: a leaf, or one that `retain_grad` was called on.
    pub fn grad(&self, variable: usize) -> Option<&Tensor> {
        self.accumulated.get(&self.variables[variable]).map(|&grad| &self.tensors[grad])
    }

    /// Replaces the gradient that a variable holds.
    pub fn set_grad(&mut self, variable: usize, grad: Option<(DType, Vec<f64>)>) {
        let at = self.variables[variable];
        self.accumulated.remove(&at);
        if let Some((dtype, values)) = grad {
            let grad = self.constant(dtype, &values);
            self.accumulated.insert(at, grad);
        }
    }

    /// Changes the contract of a leaf. What was computed from it keeps its own.
    pub fn set_contract(&mut self, leaf: usize, contract: (GradDType, Source)) {
        let leaf = self.variables[leaf];
        self.tensors[leaf].contract = Some(contract);
        // A one that stands for a seed has the dtype that is expected when backward begins.
        for position in 0..self.roots.len() {
            if self.roots[position].0 == leaf && self.program.roots[position].seed.is_none() {
                self.roots[position].1 = self.constant(self.tensors[leaf].zero_dtype(), &[1.0]);
            }
        }
    }

    /// Registers hooks.
    pub fn register(&mut self, hooks: &[Hook]) {
        let leaves = self.program.leaves.len();
        for (number, &hook) in hooks.iter().enumerate() {
            let mut among = self.tracked();
            among.retain(|&variable| hook.kind != HookKind::Accumulated || variable < leaves);
            if among.is_empty() || hook.life == Life::Removed && hook.kind != HookKind::Retain {
                continue;
            }
            let tensor = self.variables[among[hook.at.of(among.len())]];
            match hook.kind {
                // A leaf keeps its gradient anyway.
                HookKind::Retain if self.tensors[tensor].maker.is_some() => {
                    self.retained.insert(tensor);
                }
                HookKind::Retain => {}
                _ => self.hooks.push(Placed { number, hook, tensor }),
            }
        }
    }

    /// The steps that saved something, with recorded nodes.
    pub fn saving_steps(&self) -> BTreeSet<usize> {
        let recorded = |input: &usize| self.tensors[*input].contract.is_some();
        let recorded = |node: &&Node| node.inputs.iter().flatten().any(recorded);
        let saving = self.nodes.iter().filter(recorded).filter(|node| match &node.work {
            Work::Custom(custom, label) => custom.saves() && *label == Label::of_step(label.step),
            work => matches!(work, Work::Mul),
        });
        saving.filter_map(|node| self.step_of(node)).collect()
    }

    /// The step whose variable a node's first output is.
    fn step_of(&self, node: &Node) -> Option<usize> {
        let variable = self.variables.iter().position(|variable| node.outputs.first() == Some(variable))?;
        (0..self.program.steps.len()).find(|&step| self.program.variables_of(step).contains(&variable))
    }

    fn add_tensor(&mut self, dtype: DType, values: &[f64], contract: Option<(GradDType, Source)>) -> usize {
        let values = values.iter().map(|&value| round(dtype, value)).collect();
        let of = self.tensors.len();
        self.tensors.push(Tensor { dtype, values, contract, certain: true, of, maker: None });
        of
    }
}
