//! The two ways to ask for gradients: `backward` accumulates them in the leaves, `grad` returns them.

use super::edge::{Edge, Origin};
use super::grad_mode::{GradMode, GradModeGuard};
use super::graph_task::{GraphTask, Needed};
use super::tensor::DynTensor;
use crate::contract::Policy;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// How a backward call goes about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct BackwardOptions {
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
    policy: Policy,
}

impl BackwardOptions {
    /// Frees saved tensors on the way, records nothing, and refuses unused inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps saved tensors, so that another backward can go through the graph.
    pub fn retain_graph(mut self) -> Self {
        self.retain_graph = true;
        self
    }

    /// Records the backward itself, so that its results can be differentiated; keeps the graph.
    ///
    /// A gradient that a leaf accumulates this way has a graph that leads back to the leaf, and both live until
    /// [`zero_grad`](DynTensor::zero_grad); [`grad`] returns gradients without that circle.
    pub fn create_graph(mut self) -> Self {
        self.create_graph = true;
        self.retain_graph = true;
        self
    }

    /// In [`grad`], gives `None` for an input that the outputs do not depend on, instead of an error.
    pub fn allow_unused(mut self) -> Self {
        self.allow_unused = true;
        self
    }

    /// In [`grad`], gives zeros in the gradient dtype for an input that the outputs do not depend on.
    pub fn materialize_grads(mut self) -> Self {
        self.materialize_grads = true;
        self.allow_unused = true;
        self
    }

    /// Refuses every conversion of a gradient to a dtype that nobody declared: to the default gradient dtype of a tensor,
    /// or to one that a built-in operation carried. Conversions to declared dtypes stay allowed, narrowing or not.
    pub fn strict(mut self) -> Self {
        self.policy = Policy::Strict;
        self
    }

    /// Whether saved tensors are kept.
    pub fn retains_graph(self) -> bool {
        self.retain_graph
    }

    /// Whether the backward itself is recorded.
    pub fn creates_graph(self) -> bool {
        self.create_graph
    }

    /// Whether an input of [`grad`] may have no gradient.
    pub fn allows_unused(self) -> bool {
        self.allow_unused
    }

    /// Whether such an input then gets zeros.
    pub fn materializes_grads(self) -> bool {
        self.materialize_grads
    }

    /// What a gradient gets whose conversion nobody declared.
    pub fn policy(self) -> Policy {
        self.policy
    }

    fn mode(self) -> GradModeGuard {
        if self.create_graph { GradModeGuard::enter(GradMode::Enabled) } else { GradModeGuard::disable() }
    }
}

/// Sends gradients from the roots to all leaves, where they are added to the leaves' own.
///
/// Each root comes with its seed, the gradient of whatever is differentiated with respect to it; `None` stands for
/// one, if the root is a scalar. A seed may have any floating dtype and is admitted like every other gradient.
///
/// # Errors
/// [`Error::NoGraph`], [`Error::SeedMissing`] and mismatched seeds before anything runs; later whatever a backward
/// reports. After an error the leaves keep the gradients that had arrived.
pub fn backward<E: Engine>(
    roots: &[(&DynTensor<E>, Option<&DynTensor<E>>)],
    options: BackwardOptions,
) -> Result<()> {
    let mut task = GraphTask::new(options.retain_graph, options.policy);
    let _mode = options.mode();
    seed_roots(&mut task, roots)?;
    task.run().map(drop)
}

/// The gradients of the roots with respect to `inputs`, leaves or not, in the inputs' gradient dtypes.
///
/// Nothing is accumulated in leaves, and only nodes on the way to an input run. Roots and seeds as in [`backward`].
///
/// # Errors
/// As [`backward`], and [`Error::NotDifferentiable`] or [`Error::Unreachable`] for an input without a gradient.
///
/// # Examples
/// A gradient penalty: the derivative of (dy/dx)², with y = x³.
/// ```
/// use gradpact::prelude::*;
///
/// let x = Tensor::<f16, f32>::from_vec(vec![f16::from_f32(2.0)], [1])?.requiring_grad()?;
/// let y = x.pow_scalar(3.0)?;
/// let options = BackwardOptions::new().create_graph();
/// let slope = gradpact::grad(&[(y.sum()?.as_dyn(), None)], &[x.as_dyn()], options)?.remove(0).unwrap();
/// assert_eq!((slope.dtype(), slope.item::<f32>()?), (DType::F32, 12.0));
/// slope.mul(&slope)?.sum()?.backward()?;
/// assert_eq!(x.grad().unwrap().item()?, 288.0);
/// # Ok::<(), gradpact::Error>(())
/// ```
pub fn grad<E: Engine>(
    roots: &[(&DynTensor<E>, Option<&DynTensor<E>>)],
    inputs: &[&DynTensor<E>],
    options: BackwardOptions,
) -> Result<Vec<Option<DynTensor<E>>>> {
    let targets = inputs.iter().enumerate().map(|(i, input)| target(i, input)).collect::<Result<Vec<_>>>()?;
    let needed =
        Needed::search(roots.iter().filter_map(|(root, _)| root.origin().edge()), targets.iter().copied());
    if let Some(&position) = needed.unreached.first().filter(|_| !options.allow_unused) {
        return Err(Error::Unreachable { position, cuts: cuts_behind(roots) });
    }
    let mut task = GraphTask::new(options.retain_graph, options.policy).capturing(needed, inputs.len());
    let _mode = options.mode();
    seed_roots(&mut task, roots)?;
    let mut answers = task.run()?;
    for (position, (grad, target)) in answers.grads.iter_mut().zip(&targets).enumerate() {
        if grad.is_none() && options.materialize_grads {
            *grad = Some(target.metadata().filled(0.0)?);
        } else if grad.is_none() && !options.allow_unused {
            let withheld = answers.withheld.iter().map(|(node, input)| {
                format!("backward of `{}` returned `None` for its input {input}", node.name())
            });
            let cuts = cuts_behind(roots).into_iter().chain(withheld).collect();
            return Err(Error::Unreachable { position, cuts });
        }
    }
    Ok(answers.grads)
}

fn target<'g, E: Engine>(position: usize, input: &&'g DynTensor<E>) -> Result<&'g Edge<E>> {
    let refuse = || Error::NotDifferentiable { position, reason: format!("it {}", input.untracked_reason()) };
    input.origin().edge().ok_or_else(refuse)
}

fn seed_roots<'g, E: Engine>(
    task: &mut GraphTask<'g, E>,
    roots: &[(&'g DynTensor<E>, Option<&DynTensor<E>>)],
) -> Result<()> {
    for (root, seed) in roots {
        let Some(edge) = root.origin().edge() else { return Err(Error::NoGraph(root.untracked_reason())) };
        let seed = match seed {
            Some(seed) => (*seed).clone(),
            None if root.shape().is_single() => edge.metadata().filled(1.0)?,
            None => return Err(Error::SeedMissing { shape: root.shape().clone(), place: root.describe() }),
        };
        task.seed(edge, seed)?;
    }
    Ok(())
}

/// Where graphs end that could have led further, for the error of an input that was not reached.
fn cuts_behind<E: Engine>(roots: &[(&DynTensor<E>, Option<&DynTensor<E>>)]) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut cuts = std::collections::BTreeSet::new();
    let mut stack: Vec<&Origin<E>> = roots.iter().map(|(root, _)| root.origin()).collect();
    while let Some(origin) = stack.pop() {
        match origin {
            Origin::Cut(cut) => drop(cuts.insert(cut.to_string())),
            Origin::Edge(edge) if seen.insert(edge.node().sequence_nr()) => {
                stack.extend(edge.node().next_edges());
            }
            _ => {}
        }
    }
    cuts.into_iter().collect()
}
