//! The one tensor: values, and where they come from.

use core::fmt;

use super::accumulate_grad::AccumulateGrad;
use super::edge::{Cut, Edge, Origin};
use super::grad_cell::GradCell;
use super::grad_mode::{self, GradMode};
use super::metadata::InputMetadata;
use super::node::NodeRef;
use crate::contract::{GradContract, GradDType, Policy, Source};
use crate::dtype::DType;
use crate::engine::{Array, Cpu, Engine};
use crate::error::{Error, Result};
use crate::list::List;
use crate::shape::Shape;

/// What a forward returns: one tensor for each output.
pub type Outputs<E = Cpu> = List<DynTensor<E>>;

/// Gradients by position; `None` where there is none.
pub type Gradients<E = Cpu> = List<Option<DynTensor<E>>>;

/// A tensor whose dtypes are known at run time: immutable values and, if tracked, its place in the graph.
///
/// Cloning shares both. Everything that [`Tensor`](crate::Tensor) can do, it can, with errors at run time.
#[derive(Clone)]
pub struct DynTensor<E: Engine = Cpu> {
    array: E::Array,
    origin: Origin<E>,
}

impl<E: Engine> DynTensor<E> {
    /// A tensor of these values that nobody asked the gradient of.
    pub fn from_array(array: E::Array) -> Self {
        // A value made inside a forward may depend on tracked inputs in a way that no operation shows.
        let origin = match grad_mode::current() {
            GradMode::InForward => Origin::Cut(Cut::in_forward()),
            _ => Origin::Data,
        };
        Self { array, origin }
    }

    pub(crate) fn with_origin(array: E::Array, origin: Origin<E>) -> Self {
        Self { array, origin }
    }

    /// What stands among saved tensors for an optional input that was not given.
    pub(crate) fn absent() -> Result<Self> {
        let nothing = E::Array::full(&Shape::scalar(), 0.0, DType::F32)?;
        Ok(Self::with_origin(nothing, Origin::Absent))
    }

    /// Says where it comes from, once that is known.
    #[inline]
    pub(crate) fn set_origin(&mut self, origin: Origin<E>) {
        self.origin = origin;
    }

    /// The values.
    pub fn array(&self) -> &E::Array {
        &self.array
    }

    /// The values, without the graph.
    pub fn into_array(self) -> E::Array {
        self.array
    }

    /// Where it comes from.
    pub fn origin(&self) -> &Origin<E> {
        &self.origin
    }

    /// The dtype of the values.
    pub fn dtype(&self) -> DType {
        self.array.dtype()
    }

    /// The extents of the dimensions.
    pub fn shape(&self) -> &Shape {
        self.array.shape()
    }

    /// Whether gradients of it are recorded: it is a leaf made with `requires_grad`, or computed from one.
    pub fn requires_grad(&self) -> bool {
        matches!(self.origin, Origin::Edge(_))
    }

    /// Whether no Function made it.
    pub fn is_leaf(&self) -> bool {
        self.leaf().is_some() || !self.requires_grad()
    }

    pub(crate) fn leaf(&self) -> Option<&AccumulateGrad<E>> {
        self.origin.edge().and_then(|edge| edge.node().step().as_leaf())
    }

    /// The node that made it, or for a leaf the one that accumulates its gradient; `None` if it is untracked.
    pub fn grad_fn(&self) -> Option<&NodeRef<E>> {
        self.origin.edge().map(Edge::node)
    }

    /// Which output of [`grad_fn`](Self::grad_fn) it is.
    pub fn output_nr(&self) -> usize {
        self.origin.edge().map_or(0, |edge| edge.input_nr as usize)
    }

    /// What holds for its gradient: declared, or its own dtype if that is floating. `None` if it cannot have one.
    pub fn grad_contract(&self) -> Option<GradContract> {
        match &self.origin {
            Origin::Edge(edge) => Some(edge.metadata().contract()),
            _ => self.dtype().is_float().then(|| GradContract::default_of(self.dtype())),
        }
    }

    /// The dtype in which its gradient must arrive; of an untracked tensor the one it would have by default. `None` if it is
    /// not floating-point, and no gradient was declared for it.
    pub fn grad_dtype(&self) -> Option<GradDType> {
        self.grad_contract().map(|contract| contract.grad_dtype)
    }

    /// Whether [`grad_dtype`](Self::grad_dtype) was declared, is the default, or was carried by a built-in operation.
    pub fn grad_dtype_source(&self) -> Option<Source> {
        self.grad_contract().map(|contract| contract.source)
    }

    /// A leaf with these values, whose gradient is kept in [`grad`](Self::grad) in the values' own dtype.
    ///
    /// # Errors
    /// [`Error::DType`] if the values are not floating-point.
    pub fn requiring_grad(&self) -> Result<Self> {
        self.leaf_with(GradContract::default_of(self.dtype()))
    }

    /// A leaf with these values, whose gradient is kept in `grad_dtype`.
    ///
    /// # Errors
    /// [`Error::DType`] if the values or the gradient dtype are not floating-point.
    pub fn requiring_grad_in(&self, grad_dtype: GradDType) -> Result<Self> {
        self.leaf_with(GradContract { grad_dtype, source: Source::Declared, policy: Policy::Cast })
    }

    /// The leaf that takes the place of this one when its values are updated: with the same gradient contract, hooks and
    /// metadata, and without a gradient. Node creation hooks do not see it: they saw the leaf it follows.
    ///
    /// # Errors
    /// [`Error::NotALeaf`].
    #[cfg_attr(not(feature = "cpu"), expect(dead_code, reason = "optimizers are part of the CPU engine"))]
    pub(crate) fn succeeded_by(&self, array: E::Array) -> Result<Self> {
        let (Some(_), Some(node)) = (self.leaf(), self.grad_fn()) else {
            return Err(Error::NotALeaf { call: "step", producer: self.describe() });
        };
        let node = AccumulateGrad::following(node, &array);
        Ok(Self { array, origin: Origin::Edge(Edge::new(node, 0)) })
    }

    /// Changes the dtype in which this leaf's gradient is kept, also for graphs that exist already.
    ///
    /// # Errors
    /// [`Error::NotALeaf`], [`Error::DType`] if it is not floating-point, and [`Error::GradPresent`] if the leaf holds a
    /// gradient of another dtype.
    pub fn set_grad_dtype(&self, grad_dtype: GradDType) -> Result<()> {
        let (leaf, metadata) = self.as_leaf("set_grad_dtype")?;
        grad_dtype.require_float("set_grad_dtype")?;
        leaf.set_grad_dtype(metadata, GradContract::declared(grad_dtype))
    }

    /// Goes back to keeping this leaf's gradient in the dtype of its values, as if none had been set.
    ///
    /// # Errors
    /// [`Error::NotALeaf`], and [`Error::GradPresent`] if the leaf holds a gradient of another dtype.
    pub fn reset_grad_dtype(&self) -> Result<()> {
        let (leaf, metadata) = self.as_leaf("reset_grad_dtype")?;
        leaf.set_grad_dtype(metadata, GradContract::default_of(self.dtype()))
    }

    /// Puts a gradient in the place of what this leaf has accumulated; `None` as [`zero_grad`](Self::zero_grad).
    ///
    /// Nothing is converted: the gradient must have the leaf's gradient dtype, and its shape. A tracked gradient keeps its graph;
    /// one that was computed from this leaf then keeps the leaf alive until [`zero_grad`](Self::zero_grad).
    ///
    /// # Errors
    /// [`Error::NotALeaf`], [`Error::Gradient`] if dtype or shape are others, [`Error::GradientNotFloat`], and
    /// [`Error::OwnGrad`] if the gradient is this very leaf.
    pub fn set_grad(&self, grad: Option<&Self>) -> Result<()> {
        let (leaf, metadata) = self.as_leaf("set_grad")?;
        let Some(grad) = grad else {
            leaf.set_grad(None);
            return Ok(());
        };
        if grad.leaf().is_some_and(|other| core::ptr::eq(leaf, other)) {
            return Err(Error::OwnGrad);
        }
        leaf.assign_grad(metadata, grad)
    }

    /// The sink of this leaf, and what is known of its gradient.
    fn as_leaf(&self, call: &'static str) -> Result<(&AccumulateGrad<E>, &InputMetadata)> {
        Self::refuse_foreign(call)?;
        let leaf = self.leaf().zip(self.origin.edge().map(Edge::metadata));
        leaf.ok_or_else(|| Error::NotALeaf { call, producer: self.describe() })
    }

    /// Refuses a call that would record something about a tensor whose graph is not that of this crate.
    ///
    /// # Errors
    /// [`Error::Argument`].
    pub(super) fn refuse_foreign(operation: &'static str) -> Result<()> {
        if !E::HAS_OWN_GRAPH {
            return Ok(());
        }
        let problem = "the tensor is recorded in the graph of its engine, which this method does not reach: call the method of \
                       the same name of a typed tensor, or that of the engine's own tensor";
        Err(Error::Argument { operation, problem: problem.to_owned() })
    }

    fn leaf_with(&self, contract: GradContract) -> Result<Self> {
        let operation = "requiring_grad";
        Self::refuse_foreign(operation)?;
        GradDType::Exactly(self.dtype()).require_float(operation)?;
        contract.grad_dtype.require_float(operation)?;
        let node = AccumulateGrad::record(&self.array, contract)?;
        Ok(Self { array: self.array.clone(), origin: Origin::Edge(Edge::new(node, 0)) })
    }

    /// The gradient that backward calls have accumulated in this leaf, or that [`retain_grad`](Self::retain_grad) asked
    /// to keep; `None` before the first, and on other tensors. What is computed from a leaf is no leaf: updating a
    /// parameter so that it stays one is what the optimizers of the module `optim` do.
    pub fn grad(&self) -> Option<Self> {
        match self.leaf() {
            Some(leaf) => leaf.grad(),
            None => self.retained().and_then(GradCell::get),
        }
    }

    /// Forgets the accumulated gradient, so that the next backward starts afresh.
    pub fn zero_grad(&self) {
        match self.leaf() {
            Some(leaf) => leaf.set_grad(None),
            None => self.retained().into_iter().for_each(|kept| kept.set(None)),
        }
    }

    /// The same values as a constant: gradients stop here.
    #[must_use]
    pub fn detach(&self) -> Self {
        let origin = match &self.origin {
            Origin::Data => Origin::Data,
            _ => Origin::Cut(Cut::Detached),
        };
        Self { array: self.array.clone(), origin }
    }

    /// Why it has no gradient, to end the sentence "the tensor …".
    pub(crate) fn untracked_reason(&self) -> String {
        match &self.origin {
            Origin::Cut(cut) => format!("is cut off from its graph: {cut}"),
            _ if !self.dtype().is_float() => {
                format!("is {}; only floating-point tensors that require a gradient have one", self.dtype())
            }
            _ if E::HAS_OWN_GRAPH => {
                "is recorded, if at all, in the graph of its engine, not in that of gradpact".to_owned()
            }
            _ => "does not require a gradient, and neither does anything it was computed from; \
                  make a leaf with `requiring_grad`"
                .to_owned(),
        }
    }

    /// "output 0 of `Silu`", "a leaf" or "an untracked tensor".
    pub(crate) fn describe(&self) -> String {
        match self.origin.edge() {
            Some(edge) => edge.node().describe(edge.input_nr),
            None => "an untracked tensor".to_owned(),
        }
    }
}

impl<E: Engine> From<DynTensor<E>> for Gradients<E> {
    fn from(tensor: DynTensor<E>) -> Self {
        Some(tensor).into()
    }
}

impl<E: Engine, const N: usize> From<[DynTensor<E>; N]> for Gradients<E> {
    fn from(tensors: [DynTensor<E>; N]) -> Self {
        tensors.into_iter().map(Some).collect()
    }
}

impl<E: Engine> fmt::Debug for DynTensor<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynTensor").field("array", &self.array).field("origin", &self.origin).finish()
    }
}
