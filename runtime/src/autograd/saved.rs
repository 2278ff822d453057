//! Tensors kept from forward to backward, without keeping the graph alive in a circle.

use core::fmt;
use std::sync::Arc;

use super::edge::{Cut, Edge, Origin};
use super::grad_mode;
use super::node::NodeRef;
use super::pass_through::saved_intermediate;
use super::saved_hooks::{self, Packet, SavedHooks, foreign, run_hook};
use super::tensor::DynTensor;
use crate::dtype::DType;
use crate::engine::{Array, Engine};
use crate::error::{Error, Phase, Result};
use crate::shape::Shape;

/// A tensor saved by a forward.
#[derive(Clone)]
pub struct SavedTensor<E: Engine>(Saved<E>);

#[derive(Clone)]
enum Saved<E: Engine> {
    /// As it is.
    Here(Role<E>, E::Array),
    /// What hooks made of it.
    Packed(Arc<Packed<E>>),
}

/// What a saved tensor is to the Function, that is where its gradient goes in a second derivative.
#[derive(Clone)]
enum Role<E: Engine> {
    /// An input, or a constant: kept with its origin.
    Plain(Origin<E>),
    /// An output: its edge leads to the very node that holds it, so only the values are kept. See NOTE [Saved outputs].
    Output(u32),
    /// Neither: computed inside the forward, where nothing was recorded.
    Intermediate,
}

struct Packed<E: Engine> {
    role: Role<E>,
    dtype: DType,
    shape: Shape,
    packet: Packet,
    hooks: Arc<dyn SavedHooks>,
}

/// NOTE [Saved outputs]: a node that held one of its own outputs would hold itself and never be freed.
impl<E: Engine> SavedTensor<E> {
    /// Files a tensor that the forward of `function` with these outputs saved, packed if hooks ask for that.
    ///
    /// # Errors
    /// Those of a pack hook.
    pub fn new(
        function: &'static str,
        tensor: DynTensor<E>,
        outputs: &[DynTensor<E>],
        differentiable: &dyn Fn(usize) -> bool,
    ) -> Result<Self> {
        let role = Role::of(&tensor, outputs, differentiable);
        let plain: DynTensor<E> = DynTensor::with_origin(tensor.into_array(), Origin::Data);
        let Some(hooks) = saved_hooks::current(&plain) else {
            return Ok(Self(Saved::Here(role, plain.into_array())));
        };
        let packet = run_hook(function, Phase::Pack, || hooks.pack(&plain))?;
        let (dtype, shape) = (plain.dtype(), plain.shape().clone());
        Ok(Self(Saved::Packed(Arc::new(Packed { role, dtype, shape, packet, hooks }))))
    }

    /// The tensor again, for the backward of `node`, which saved it at `position`.
    ///
    /// # Errors
    /// Those of an unpack hook, and of node creation hooks.
    pub fn unpack(self, node: &NodeRef<E>, position: usize) -> Result<DynTensor<E>> {
        let (role, array) = match self.0 {
            Saved::Here(role, array) => (role, array),
            Saved::Packed(packed) => (packed.role.clone(), packed.unpack(node.name(), position)?),
        };
        Ok(match role {
            Role::Plain(origin) => DynTensor::with_origin(array, origin),
            Role::Output(position) => {
                DynTensor::with_origin(array, Origin::Edge(Edge::new(NodeRef::clone(node), position)))
            }
            // What its derivative would be matters only if this backward is recorded.
            Role::Intermediate if grad_mode::is_enabled() => saved_intermediate(node, array)?,
            Role::Intermediate => DynTensor::from_array(array),
        })
    }

    /// What is kept.
    pub fn describe(&self) -> SavedInfo {
        match &self.0 {
            Saved::Here(_, array) => SavedInfo::of_array(array),
            Saved::Packed(packed) => SavedInfo {
                dtype: packed.dtype,
                shape: packed.shape.clone(),
                packed: Some(packed.hooks.describe(&packed.packet)),
            },
        }
    }
}

impl<E: Engine> Role<E> {
    fn of(tensor: &DynTensor<E>, outputs: &[DynTensor<E>], differentiable: &dyn Fn(usize) -> bool) -> Self {
        let &Origin::Cut(cut @ Cut::InForward(_)) = tensor.origin() else {
            return Self::Plain(tensor.origin().clone());
        };
        let is_this = |output: &DynTensor<E>| matches!(output.origin(), Origin::Cut(other) if *other == cut);
        let positions =
            || outputs.iter().enumerate().filter(|(_, output)| is_this(output)).map(|(position, _)| position);
        // Of a value that was returned more than once, the output that has a gradient.
        match positions().find(|&position| differentiable(position)).or_else(|| positions().next()) {
            Some(position) if differentiable(position) => Self::Output(position as u32),
            // The author said that it has no derivative.
            Some(_) => Self::Plain(Origin::Cut(Cut::Detached)),
            None if tensor.dtype().is_float() => Self::Intermediate,
            None => Self::Plain(tensor.origin().clone()),
        }
    }
}

impl<E: Engine> Packed<E> {
    fn unpack(&self, function: &str, position: usize) -> Result<E::Array> {
        let tensor = run_hook(function, Phase::Unpack, || self.hooks.unpack(&self.packet))?;
        let tensor: &DynTensor<E> = tensor.as_any().downcast_ref().ok_or_else(foreign)?;
        if tensor.dtype() == self.dtype && *tensor.shape() == self.shape {
            return Ok(tensor.array().clone());
        }
        Err(Error::Saved {
            function: function.to_owned(),
            position,
            expected: format!("{} {}, as it was packed", self.dtype, self.shape),
            got: format!("{} {}", tensor.dtype(), tensor.shape()),
        })
    }
}

/// What a node keeps of one saved tensor. Displayed like `f32 [2]`, or `f32 [2], kept as bf16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedInfo {
    /// The dtype that backward sees.
    pub dtype: DType,
    /// The shape that backward sees.
    pub shape: Shape,
    /// What hooks made of it, if there were any.
    pub packed: Option<String>,
}

impl SavedInfo {
    /// What is kept of a tensor that is kept as it is.
    pub(crate) fn of<E: Engine>(tensor: &DynTensor<E>) -> Self {
        Self::of_array(tensor.array())
    }

    fn of_array(array: &impl Array) -> Self {
        Self { dtype: array.dtype(), shape: array.shape().clone(), packed: None }
    }
}

impl fmt::Display for SavedInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, self.shape)?;
        self.packed.iter().try_for_each(|packed| write!(f, ", {packed}"))
    }
}

impl<E: Engine> fmt::Debug for SavedTensor<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.describe())
    }
}
