//! One backward call: the gradients that wait, and the loop over the nodes that they wait at.

use core::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use smallvec::SmallVec;

use super::admission::{Sender, admit_gradient};
use super::edge::{Edge, Origin};
use super::node::{BackwardCall, NodeRef};
use super::tensor::{DynTensor, Gradients};
use super::waiting::{Pending, Sums, Waiting};
use crate::contract::Policy;
use crate::engine::Engine;
use crate::error::{Error, Phase, Place, Result};
use crate::observe::{self, Scene};

/// The nodes that a call has to visit, when it is asked for the gradients of certain tensors only.
#[derive(Default)]
pub(super) struct Needed {
    /// Nodes whose backward runs.
    executed: HashSet<u64>,
    /// Inputs of nodes whose gradient is asked for, and where in the answer it goes.
    captured: HashMap<u64, SmallVec<[(u32, usize); 1]>>,
    /// Answers that no root leads to.
    pub(super) unreached: Vec<usize>,
}

impl Needed {
    /// Finds the nodes on the way from the roots to the targets.
    pub(super) fn search<'g, E: Engine>(
        roots: impl Iterator<Item = &'g Edge<E>>,
        targets: impl Iterator<Item = &'g Edge<E>>,
    ) -> Self {
        let mut needed = Self::default();
        for (answer, target) in targets.enumerate() {
            let slots = needed.captured.entry(target.node().sequence_nr()).or_default();
            slots.push((target.input_nr, answer));
        }
        // Nothing below the lowest target can lead to one. See NOTE [Sequence numbers].
        let lowest = needed.captured.keys().copied().min().unwrap_or(u64::MAX);
        let mut reached = BTreeMap::new();
        let mut stack: Vec<&NodeRef<E>> = roots.map(Edge::node).collect();
        while let Some(node) = stack.pop() {
            if node.sequence_nr() >= lowest && reached.insert(node.sequence_nr(), node).is_none() {
                stack.extend(node.next_edges().iter().filter_map(Origin::edge).map(Edge::node));
            }
        }
        let unreached = needed.captured.iter().filter(|(node, _)| !reached.contains_key(node));
        needed.unreached = unreached.flat_map(|(_, slots)| slots.iter().map(|slot| slot.1)).collect();
        needed.unreached.sort_unstable();
        for (sequence_nr, node) in reached {
            if node.next_edges().iter().filter_map(Origin::edge).any(|edge| needed.wants(edge)) {
                needed.executed.insert(sequence_nr);
            }
        }
        needed
    }

    /// Whether a gradient sent along `edge` serves a target.
    pub(super) fn wants<E: Engine>(&self, edge: &Edge<E>) -> bool {
        let sequence_nr = edge.node().sequence_nr();
        self.executed.contains(&sequence_nr)
            || self.captured.get(&sequence_nr).is_some_and(|slots| slots.iter().any(|s| s.0 == edge.input_nr))
    }
}

/// The state of one backward call.
pub(super) struct GraphTask<'g, E: Engine> {
    waiting: Waiting<'g, E>,
    retain_graph: bool,
    policy: Policy,
    /// The number of this call, if it is observed.
    observed: Option<u64>,
    needed: Option<Needed>,
    captured: Vec<Option<DynTensor<E>>>,
    /// Inputs of nodes whose gradient was wanted for a target, while backward returned `None`.
    withheld: Vec<(&'g NodeRef<E>, usize)>,
    /// The node whose backward runs, if that is the user's code.
    running: Option<&'g NodeRef<E>>,
}

/// What a call that was asked for certain gradients has found.
pub(super) struct Answers<'g, E: Engine> {
    /// In the order of the targets.
    pub(super) grads: Vec<Option<DynTensor<E>>>,
    /// Where a backward returned `None` on the way to one.
    pub(super) withheld: Vec<(&'g NodeRef<E>, usize)>,
}

impl<'g, E: Engine> GraphTask<'g, E> {
    /// A call that runs every node.
    pub(super) fn new(retain_graph: bool, policy: Policy) -> Self {
        Self {
            waiting: Waiting::new(),
            retain_graph,
            policy,
            observed: observe::observed_call(),
            needed: None,
            captured: Vec::new(),
            withheld: Vec::new(),
            running: None,
        }
    }

    /// The call, capturing the gradients of `answers` targets and running only what leads to them.
    pub(super) fn capturing(self, needed: Needed, answers: usize) -> Self {
        Self { needed: Some(needed), captured: vec![None; answers], ..self }
    }

    /// Admits a seed to a root.
    pub(super) fn seed(&mut self, root: &'g Edge<E>, mut seed: DynTensor<E>) -> Result<()> {
        admit_gradient(self.policy, Sender::Seed, root, &mut seed, self.observed, true)?;
        if self.wants(root) { self.send(root, seed, true) } else { Ok(()) }
    }

    fn wants(&self, edge: &Edge<E>) -> bool {
        self.needed.as_ref().is_none_or(|needed| needed.wants(edge))
    }

    /// Adds an admitted gradient to what waits at the end of an edge. See [`Pending::add`].
    fn send(&mut self, edge: &'g Edge<E>, grad: DynTensor<E>, late: bool) -> Result<()> {
        self.waiting.at(edge.node()).add(edge.input_nr as usize, grad, late)
    }

    /// Visits what a node leads to, without a gradient. See NOTE [Undefined gradients].
    fn send_undefined(&mut self, edge: &'g Edge<E>) {
        if self.wants(edge) && edge.node().step().as_leaf().is_none() {
            self.waiting.at(edge.node());
        }
    }

    /// Runs the nodes, highest first, until no gradient waits. Returns what was captured.
    pub(super) fn run(mut self) -> Result<Answers<'g, E>> {
        // Caught once for all nodes: to catch at each costs as much as all else that is done for it.
        match catch_unwind(AssertUnwindSafe(|| self.run_nodes())) {
            Ok(result) => result.map(|()| Answers { grads: self.captured, withheld: self.withheld }),
            Err(payload) => match self.running {
                Some(node) => Err(panicked(node.name(), Phase::Backward, payload)),
                None => resume_unwind(payload),
            },
        }
    }

    fn run_nodes(&mut self) -> Result<()> {
        while let Some(Pending { node, mut grads, sums }) = self.waiting.pop() {
            self.deliver(node, &mut grads, sums)?;
            if let Some(hooks) = node.existing_hooks() {
                guarded(node.name(), || hooks.run_tensor_hooks(node, &mut grads))?;
            }
            if let Some(needed) = &self.needed {
                for &(input_nr, answer) in needed.captured.get(&node.sequence_nr()).into_iter().flatten() {
                    self.captured[answer].clone_from(&grads[input_nr as usize]);
                }
                if !needed.executed.contains(&node.sequence_nr()) {
                    continue;
                }
            }
            self.step(node, grads)?;
        }
        Ok(())
    }

    /// Completes the gradients of a node's inputs.
    fn deliver(&self, node: &NodeRef<E>, grads: &mut Gradients<E>, sums: Option<Box<Sums<E>>>) -> Result<()> {
        let scene = |input: usize| {
            self.observed.and_then(|call| {
                observe::enter(|| Scene::Sum { node: node.info(), position: input as u32, call })
            })
        };
        for (input, sum) in sums.into_iter().flat_map(|sums| *sums) {
            let _scene = scene(input);
            grads[input] = sum.deliver(node.inputs()[input].contract().grad_dtype)?;
        }
        for (input, (grad, metadata)) in grads.iter_mut().zip(node.inputs()).enumerate() {
            // At a leaf whose gradient dtype was changed in between.
            if let Some(grad) = grad
                && let Some(dtype) = metadata.converts(grad.dtype())
            {
                let _scene = scene(input);
                *grad = grad.cast(dtype)?;
            }
        }
        Ok(())
    }

    /// NOTE [Undefined gradients]: a backward may return `None` for an input. What computed that input is visited all the
    /// same, as in PyTorch: a Function of the user's then receives zeros in the declared dtype (or `None`), an operation
    /// passes the lack of a gradient on, and a leaf keeps what it has.
    ///
    /// Runs the backward of one node, with the hooks before and after it, and sends on what it returns.
    fn step(&mut self, node: &'g NodeRef<E>, mut grads: Gradients<E>) -> Result<()> {
        let any = |grads: &Gradients<E>| grads.iter().any(Option::is_some);
        let (hooks, arrived) = (node.existing_hooks(), any(&grads));
        if let Some(hooks) = hooks.filter(|_| arrived || node.step().is_user_code()) {
            guarded(node.name(), || hooks.run_before(node, &mut grads))?;
        }
        // A hook may have taken away what arrived.
        if !node.step().is_user_code() && !any(&grads) {
            node.next_edges().iter().filter_map(Origin::edge).for_each(|edge| self.send_undefined(edge));
            return Ok(());
        }
        if node.step().materializes_grads() {
            materialize(node, &mut grads)?;
        }
        let grad_outputs = hooks.filter(|hooks| hooks.has_after()).map(|_| grads.clone());
        // Hooks see gradients as they are admitted.
        let late = grad_outputs.is_none();
        let mut grads = self.run_step(node, grads)?;
        check_count(node.name(), node.next_edges().len(), &mut grads)?;
        self.admit(node, &mut grads, late)?;
        if let (Some(hooks), Some(grad_outputs)) = (hooks, grad_outputs) {
            guarded(node.name(), || hooks.run_after(node, &mut grads, &grad_outputs))?;
        }
        for (position, (grad, origin)) in grads.iter_mut().zip(node.next_edges()).enumerate() {
            let Origin::Edge(edge) = origin else { continue };
            match grad.take() {
                Some(grad) => self.send(edge, grad, late)?,
                None => {
                    if arrived && self.needed.as_ref().is_some_and(|needed| needed.wants(edge)) {
                        self.withheld.push((node, position));
                    }
                    self.send_undefined(edge);
                }
            }
        }
        Ok(())
    }

    /// Runs the step of a node; of user code errors say where they come from.
    fn run_step(&mut self, node: &'g NodeRef<E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        let (retain_graph, policy, needed) = (self.retain_graph, self.policy, self.needed.as_ref());
        let call = BackwardCall { node, retain_graph, policy, needed };
        let is_user_code = node.step().is_user_code();
        let _scene = self.observed.and_then(|call| {
            observe::enter(|| Scene::Function {
                function: node.name().to_owned(),
                is_built_in: !is_user_code,
                phase: Phase::Backward,
                backward: Some((node.info(), call)),
            })
        });
        if !is_user_code {
            return node.step().backward(&call, grads);
        }
        self.running = Some(node);
        let mut returned = node.step().backward(&call, grads);
        self.running = None;
        if returned.is_err() {
            returned = returned.map_err(|error| error.inside(node.name(), Phase::Backward));
        }
        returned
    }

    /// Admits the gradients that a node's backward returned to its next edges; drops what nobody asked for.
    fn admit(&self, node: &NodeRef<E>, returned: &mut Gradients<E>, late: bool) -> Result<()> {
        for (position, (slot, origin)) in returned.iter_mut().zip(node.next_edges()).enumerate() {
            let Some(grad) = slot else { continue };
            match origin {
                Origin::Edge(edge) if self.wants(edge) => {
                    let sender = Sender::Node(node, position);
                    admit_gradient(self.policy, sender, edge, grad, self.observed, late)?;
                }
                Origin::Absent => {
                    return Err(Error::GradientForAbsentInput(Box::new(Place::input(node.name(), position))));
                }
                _ => *slot = None,
            }
        }
        Ok(())
    }
}

/// Puts zeros in the declared dtype where no gradient came.
fn materialize<E: Engine>(node: &NodeRef<E>, grads: &mut Gradients<E>) -> Result<()> {
    for (grad, metadata) in grads.iter_mut().zip(node.inputs()) {
        if grad.is_none() {
            *grad = Some(metadata.filled(0.0)?);
        }
    }
    Ok(())
}

/// Runs hooks of the user's: their panics become errors.
pub(super) fn guarded<R>(function: &str, hooks: impl FnOnce() -> Result<R>) -> Result<R> {
    caught(function, Phase::Hook, hooks)?
}

/// What `body` returns; an error if it panics.
pub(super) fn caught<R>(function: &str, phase: Phase, body: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| panicked(function, phase, payload))
}

/// The error that a caught panic becomes.
#[cold]
pub(crate) fn panicked(function: &str, phase: Phase, payload: Box<dyn Any + Send>) -> Error {
    let message = (payload.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(a payload that is not text)".to_owned());
    // Dropping it could panic again, and what that brings yet again.
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(again);
    }
    Error::Panicked { function: function.to_owned(), phase, message }
}

/// Sees to one gradient for each input; `None`s past the last one are dropped, as in PyTorch.
pub(crate) fn check_count<E: Engine>(
    function: &str,
    expected: usize,
    returned: &mut Gradients<E>,
) -> Result<()> {
    let got = returned.len();
    while returned.len() > expected && returned.last().is_some_and(Option::is_none) {
        returned.pop();
    }
    if returned.len() == expected {
        Ok(())
    } else {
        Err(Error::GradientCount { function: function.to_owned(), expected, got })
    }
}
