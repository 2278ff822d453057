//! The backward half of the reference.

use std::collections::HashMap;

use gradpact::{DType, GradDType, Source};

use super::{Reference, Tensor, Work};
use crate::format::{narrowest_float_for, round};
use crate::log::{Entry, Label, Who};
use crate::plan::{HookKind, Life};
use crate::program::Custom;

/// A gradient that was converted to a dtype that nobody declared.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// Whose backward returned it, for which input; a seed if `None`.
    pub sender: Option<(Work, usize)>,
    /// Whose output's gradient it became; a leaf's if `None`.
    pub receiver: Option<(Work, usize)>,
    /// What it was converted to.
    pub expected: DType,
    /// What it came as.
    pub got: DType,
}

/// What a backward did.
#[derive(Debug, Default)]
pub struct Outcome {
    gradients: HashMap<usize, usize>,
    /// What Functions and hooks were given: last node first, leaves last.
    pub log: Vec<Entry<Tensor>>,
    /// Conversions to dtypes that nobody declared, in the order in which they happened.
    pub conversions: Vec<Conversion>,
    /// The steps whose saved tensors were needed, last first.
    pub unpacked: Vec<usize>,
}

impl Outcome {
    /// The gradient that was found of a tensor.
    pub fn gradient(&self, tensor: usize) -> Option<usize> {
        self.gradients.get(&tensor).copied()
    }
}

/// One backward.
struct Pass<'r, 'p> {
    graph: &'r mut Reference<'p>,
    /// How many nodes there were when it began: it makes more, which are not part of what it differentiates.
    nodes: usize,
    seeds: Vec<(usize, usize)>,
    /// The tensors that gradients are asked of; all leaves if `None`.
    targets: Option<Vec<usize>>,
    // What is known already.
    gradients: HashMap<usize, Option<usize>>,
    visited: HashMap<usize, bool>,
    executed: HashMap<usize, bool>,
    received: HashMap<usize, Option<Vec<Option<usize>>>>,
    sent: HashMap<usize, Vec<Option<usize>>>,
    // What was written down, by tensor and by node.
    at_tensors: HashMap<usize, Vec<Entry<Tensor>>>,
    at_nodes: HashMap<usize, Vec<Entry<Tensor>>>,
    converted: HashMap<usize, Vec<Conversion>>,
}

impl Reference<'_> {
    /// Sends the seeds of the program's roots to all leaves, where they accumulate.
    pub fn backward(&mut self, recorded: bool) -> Outcome {
        self.pass(self.roots.clone(), None, recorded)
    }

    /// The gradients of the program's roots with respect to `targets`.
    pub fn asked(&mut self, targets: &[usize]) -> Outcome {
        self.pass(self.roots.clone(), Some(targets.to_vec()), false)
    }

    /// The gradients of `roots`, with their seeds, with respect to `targets`.
    pub fn gradients(&mut self, roots: &[(usize, usize)], targets: &[usize], recorded: bool) -> Outcome {
        self.pass(roots.to_vec(), Some(targets.to_vec()), recorded)
    }

    fn pass(&mut self, seeds: Vec<(usize, usize)>, targets: Option<Vec<usize>>, recorded: bool) -> Outcome {
        self.passes += 1;
        let before = core::mem::replace(&mut self.recording, recorded);
        let nodes = self.nodes.len();
        let mut pass = Pass {
            graph: self,
            nodes,
            seeds,
            targets,
            gradients: HashMap::new(),
            visited: HashMap::new(),
            executed: HashMap::new(),
            received: HashMap::new(),
            sent: HashMap::new(),
            at_tensors: HashMap::new(),
            at_nodes: HashMap::new(),
            converted: HashMap::new(),
        };
        let outcome = pass.run();
        self.recording = before;
        outcome
    }
}

impl Pass<'_, '_> {
    fn run(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        for position in 0..self.seeds.len() {
            let (root, seed) = self.seeds[position];
            outcome.conversions.extend(self.conversion(None, root, seed));
        }
        for node in (0..self.nodes).rev() {
            self.sent(node);
            for output in self.graph.nodes[node].outputs.clone() {
                if self.is_wanted(output) {
                    self.gradient(output);
                }
                outcome.log.extend(self.at_tensors.remove(&output).into_iter().flatten());
            }
            outcome.log.extend(self.at_nodes.remove(&node).into_iter().flatten());
            outcome.conversions.extend(self.converted.remove(&node).into_iter().flatten());
            let ran = self.received.get(&node).is_some_and(Option::is_some);
            outcome.unpacked.extend(self.graph.step_of(&self.graph.nodes[node]).filter(|_| ran));
        }
        for leaf in (0..self.graph.tensors.len()).rev() {
            let tensor = &self.graph.tensors[leaf];
            if tensor.maker.is_none() && tensor.of == leaf && tensor.contract.is_some() {
                self.accumulate(leaf, &mut outcome.log);
            }
        }
        let found = self.gradients.iter();
        outcome.gradients = found.filter_map(|(&tensor, grad)| Some((tensor, (*grad)?))).collect();
        outcome
    }

    /// Adds to a leaf's gradient, with the hooks around that; only finds it if gradients are asked for.
    fn accumulate(&mut self, leaf: usize, log: &mut Vec<Entry<Tensor>>) {
        let grad = if self.is_wanted(leaf) { self.gradient(leaf) } else { None };
        log.extend(self.at_tensors.remove(&leaf).into_iter().flatten());
        if let (Some(grad), None) = (grad, &self.targets) {
            let mut entries = Vec::new();
            let received = self.hooked(HookKind::Before, (None, leaf), vec![Some(grad)], &[], &mut entries);
            let sum = received[0].and_then(|grad| self.grow(leaf, grad));
            self.hooked(HookKind::Accumulated, (None, leaf), vec![sum], &[], &mut entries);
            self.hooked(HookKind::After, (None, leaf), vec![], &received, &mut entries);
            log.extend(entries);
        }
    }

    /// Adds to the gradient that a tensor holds. Where nothing is recorded what it holds has no history.
    fn grow(&mut self, tensor: usize, grad: usize) -> Option<usize> {
        let (grad_dtype, _) = self.graph.tensors[tensor].contract?;
        let before = self.graph.accumulated.get(&tensor).copied();
        let mut sum = self.graph.meet(before.into_iter().chain([grad]).collect(), grad_dtype)?;
        if !self.graph.recording && self.graph.tensors[sum].contract.is_some() {
            let Tensor { dtype, values, certain, .. } = self.graph.tensors[sum].clone();
            sum = self.graph.constant(dtype, &values);
            self.graph.tensors[sum].certain = certain;
        }
        self.graph.accumulated.insert(tensor, sum);
        Some(sum)
    }

    /// Whether a gradient of this tensor serves what was asked for.
    fn is_wanted(&mut self, tensor: usize) -> bool {
        let Tensor { contract, maker, .. } = self.graph.tensors[tensor];
        let asked = self.targets.as_ref().is_none_or(|targets| targets.contains(&tensor));
        contract.is_some() && (asked || maker.is_some_and(|node| self.is_executed(node)))
    }

    /// Whether a node leads to something that was asked for.
    fn is_executed(&mut self, node: usize) -> bool {
        if let Some(&known) = self.executed.get(&node) {
            return known;
        }
        let inputs: Vec<usize> = self.graph.nodes[node].inputs.iter().copied().flatten().collect();
        let executed = inputs.into_iter().any(|input| self.is_wanted(self.graph.tensors[input].of));
        self.executed.insert(node, executed);
        executed
    }

    /// Whether a node is reached: a root is one of its outputs, or went into a node that is reached, whether that one
    /// returns a gradient for it or none.
    fn is_visited(&mut self, node: usize) -> bool {
        if let Some(&known) = self.visited.get(&node) {
            return known;
        }
        let outputs = self.graph.nodes[node].outputs.clone();
        let visited = outputs.into_iter().any(|output| {
            let is_root = self.seeds.iter().any(|(root, _)| self.graph.tensors[*root].of == output);
            let tracked = self.graph.tensors[output].contract.is_some();
            tracked && (is_root || self.uses(output).into_iter().any(|(node, _)| self.is_visited(node)))
        });
        self.visited.insert(node, visited);
        visited
    }

    /// The places where a tensor went in: node and position, last first.
    fn uses(&self, tensor: usize) -> Vec<(usize, usize)> {
        let nodes = self.graph.nodes[..self.nodes].iter().enumerate().rev();
        let uses = nodes.flat_map(|(number, node)| {
            let is_it = |input: &Option<usize>| input.is_some_and(|i| self.graph.tensors[i].of == tensor);
            (0..node.inputs.len())
                .filter(move |&position| is_it(&node.inputs[position]))
                .map(move |p| (number, p))
        });
        uses.collect()
    }

    /// The sum of what arrives at a tensor, seeds and from each place it was used in, after its hooks.
    fn gradient(&mut self, tensor: usize) -> Option<usize> {
        if let Some(&known) = self.gradients.get(&tensor) {
            return known;
        }
        let (grad_dtype, _) = self.graph.tensors[tensor].contract?;
        let mut arriving = Vec::new();
        for (root, seed) in self.seeds.clone() {
            if self.graph.tensors[root].of == tensor {
                arriving.push(self.admitted(tensor, seed));
            }
        }
        for (node, position) in self.uses(tensor) {
            arriving.extend(self.sent(node)[position]);
        }
        let sum = self.graph.meet(arriving, grad_dtype).map(|sum| {
            let mut entries = Vec::new();
            let maker = self.graph.tensors[tensor].maker;
            let hooked = self.hooked(HookKind::Tensor, (maker, tensor), vec![Some(sum)], &[], &mut entries);
            self.at_tensors.insert(tensor, entries);
            hooked[0].unwrap_or(sum)
        });
        if let Some(sum) = sum.filter(|_| self.graph.retained.contains(&tensor)) {
            self.grow(tensor, sum);
        }
        self.gradients.insert(tensor, sum);
        sum
    }

    /// A gradient as it arrives at a tensor.
    fn admitted(&mut self, tensor: usize, grad: usize) -> usize {
        match self.graph.tensors[tensor].contract {
            Some((GradDType::Exactly(dtype), _)) => self.graph.cast(grad, dtype),
            _ => grad,
        }
    }

    /// The conversion that a gradient undergoes where it arrives, if nobody declared that.
    fn conversion(&self, sender: Option<(usize, usize)>, tensor: usize, grad: usize) -> Option<Conversion> {
        let (grad_dtype, source) = self.graph.tensors[tensor].contract?;
        let (expected, got) = (grad_dtype.dtype()?, self.graph.tensors[grad].dtype);
        let work = |node: usize| self.graph.nodes[node].work.clone();
        let output = |node: usize| self.graph.nodes[node].outputs.iter().position(|&output| output == tensor);
        (expected != got && source != Source::Declared).then(|| Conversion {
            sender: sender.map(|(node, position)| (work(node), position)),
            receiver: self.graph.tensors[tensor].maker.and_then(|node| Some((work(node), output(node)?))),
            expected,
            got,
        })
    }

    /// What the backward of a node is given: a gradient for each output. `None` if it does not run.
    fn received(&mut self, node: usize) -> Option<Vec<Option<usize>>> {
        if let Some(known) = self.received.get(&node) {
            return known.clone();
        }
        let received = self.receive(node);
        self.received.insert(node, received.clone());
        received
    }

    fn receive(&mut self, node: usize) -> Option<Vec<Option<usize>>> {
        if !self.is_executed(node) || !self.is_visited(node) {
            return None;
        }
        let outputs = self.graph.nodes[node].outputs.clone();
        let received: Vec<_> = outputs.iter().map(|&output| self.gradient(output)).collect();
        let custom = self.custom(node);
        if custom.is_none() && received[0].is_none() {
            return None;
        }
        let mut entries = Vec::new();
        let mut received =
            self.hooked(HookKind::Before, (Some(node), outputs[0]), received, &[], &mut entries);
        if let Some((custom, label)) = custom {
            for (grad, &output) in received.iter_mut().zip(&outputs).filter(|_| custom.materializes) {
                let (zeros, dtype) =
                    (vec![0.0; self.graph.program.length], self.graph.tensors[output].zero_dtype());
                grad.get_or_insert_with(|| self.graph.constant(dtype, &zeros));
            }
            let inputs = self.graph.nodes[node].inputs.clone();
            let needs = inputs.iter().map(|input| input.is_some_and(|input| self.is_wanted(input))).collect();
            entries.push(Entry { who: Who::Function(label), saw: self.seen(&received), needs });
        }
        self.at_nodes.insert(node, entries);
        Some(received)
    }

    /// The Function of a node, unless it is built in.
    fn custom(&self, node: usize) -> Option<(Custom, Label)> {
        match &self.graph.nodes[node].work {
            Work::Custom(custom, label) => Some(((**custom).clone(), *label)),
            _ => None,
        }
    }

    fn seen(&self, grads: &[Option<usize>]) -> Vec<Option<Tensor>> {
        grads.iter().map(|grad| grad.map(|grad| self.graph.tensors[grad].clone())).collect()
    }

    /// What a node sends to its inputs: admitted there, after the hooks behind the node.
    fn sent(&mut self, node: usize) -> Vec<Option<usize>> {
        if let Some(known) = self.sent.get(&node) {
            return known.clone();
        }
        let inputs = self.graph.nodes[node].inputs.clone();
        let mut sent = vec![None; inputs.len()];
        if let Some(received) = self.received(node) {
            for (position, input) in inputs.iter().enumerate() {
                let Some(input) = input.map(|input| self.graph.tensors[input].of) else { continue };
                if self.is_wanted(input) {
                    let returned = self.returned(node, position, &received);
                    sent[position] = returned.map(|grad| self.send(node, position, input, grad));
                }
            }
            let mut entries = self.at_nodes.remove(&node).unwrap_or_default();
            let output = self.graph.nodes[node].outputs[0];
            sent = self.hooked(HookKind::After, (Some(node), output), sent, &received, &mut entries);
            self.at_nodes.insert(node, entries);
        }
        self.sent.insert(node, sent.clone());
        sent
    }

    fn send(&mut self, node: usize, position: usize, input: usize, grad: usize) -> usize {
        let conversion = self.conversion(Some((node, position)), input, grad);
        self.converted.entry(node).or_default().extend(conversion);
        let admitted = self.admitted(input, grad);
        if matches!(self.graph.nodes[node].work, Work::Meet) && admitted != grad {
            // On its way through the partial sums it may be rounded to something in between.
            let (from, to) = (self.graph.tensors[grad].values.clone(), self.graph.tensors[admitted].dtype);
            let settled = from.iter().all(|&value| rounds_alike(to, value));
            self.graph.tensors[admitted].certain &= settled;
        }
        admitted
    }

    /// What a node's backward returns for the input at `position`.
    fn returned(&mut self, node: usize, position: usize, received: &[Option<usize>]) -> Option<usize> {
        if let Some((custom, label)) = self.custom(node) {
            return self.graph.formula(node, (&custom, label), position, received);
        }
        if !matches!(self.graph.nodes[node].work, Work::Mul) {
            return received[0];
        }
        let other = self.graph.nodes[node].inputs[1 - position]?;
        let other = self.graph.saved(node, other);
        Some(self.graph.mul(received[0]?, other, None))
    }

    /// Gradients after the hooks of one kind at a place, which is a node with one of its outputs, or a leaf. `outputs` are
    /// what hooks behind a node see besides.
    fn hooked(
        &mut self,
        kind: HookKind,
        (node, tensor): (Option<usize>, usize),
        mut grads: Vec<Option<usize>>,
        outputs: &[Option<usize>],
        entries: &mut Vec<Entry<Tensor>>,
    ) -> Vec<Option<usize>> {
        for index in 0..self.graph.hooks.len() {
            let placed = &self.graph.hooks[index];
            let same_node = node.is_some() && self.graph.tensors[placed.tensor].maker == node;
            let here = placed.tensor == tensor || (same_node && kind != HookKind::Tensor);
            if placed.hook.kind != kind || !here || placed.hook.life == Life::Removed {
                continue;
            }
            let (number, hook) = (placed.number, placed.hook);
            let saw = [self.seen(&grads), self.seen(outputs)].concat();
            entries.push(Entry { who: Who::Hook(number), saw, needs: vec![] });
            if hook.life == Life::Once {
                self.graph.hooks[index].hook.life = Life::Removed;
            }
            let Some(factor) = hook.replaces.filter(|_| kind != HookKind::Accumulated) else { continue };
            for grad in grads.iter_mut().flatten() {
                let factor = vec![factor; self.graph.program.length];
                let factor = self.graph.constant(self.graph.tensors[*grad].dtype, &factor);
                *grad = self.graph.mul(*grad, factor, None);
            }
        }
        grads
    }
}

/// Whether a value is rounded to `dtype` alike by way of any wider dtype.
fn rounds_alike(dtype: DType, value: f64) -> bool {
    let wider =
        DType::FLOATS.into_iter().filter(|&other| narrowest_float_for(&[dtype, other]) == Some(other));
    let direct = round(dtype, value);
    wider
        .into_iter()
        .all(|other| round(dtype, round(other, value)).to_bits() == direct.to_bits() || direct.is_nan())
}
