//! Tensors kept from forward to backward, without keeping the graph alive in a circle.

use core::fmt;

use super::edge::{Cut, Edge, Origin};
use super::grad_mode;
use super::node::NodeRef;
use super::pass_through::saved_intermediate;
use super::tensor::DynTensor;
use crate::engine::{Array, Engine};
use crate::error::Result;

/// A tensor saved by a forward.
#[derive(Clone)]
pub enum SavedTensor<E: Engine> {
    /// An input, or a constant: kept as it is.
    Plain(DynTensor<E>),
    /// An output: its edge leads to the very node that holds it, so only the values are kept. See NOTE [Saved outputs].
    Output {
        /// The values.
        array: E::Array,
        /// Which output.
        position: u32,
    },
    /// Neither: computed inside the forward, where nothing was recorded.
    Intermediate(E::Array),
}

/// NOTE [Saved outputs]: a node that held one of its own outputs would hold itself and never be freed.
impl<E: Engine> SavedTensor<E> {
    /// Files a tensor that a forward with these outputs saved.
    pub fn new(
        tensor: DynTensor<E>,
        outputs: &[DynTensor<E>],
        differentiable: &dyn Fn(usize) -> bool,
    ) -> Self {
        let &Origin::Cut(cut @ Cut::InForward(_)) = tensor.origin() else { return Self::Plain(tensor) };
        let is_this = |output: &DynTensor<E>| matches!(output.origin(), Origin::Cut(other) if *other == cut);
        let positions =
            || outputs.iter().enumerate().filter(|(_, output)| is_this(output)).map(|(position, _)| position);
        // Of a value that was returned more than once, the output that has a gradient.
        match positions().find(|&position| differentiable(position)).or_else(|| positions().next()) {
            Some(position) if differentiable(position) => {
                Self::Output { array: tensor.into_array(), position: position as u32 }
            }
            // The author said that it has no derivative.
            Some(_) => Self::Plain(tensor.detach()),
            None if tensor.dtype().is_float() => Self::Intermediate(tensor.into_array()),
            None => Self::Plain(tensor),
        }
    }

    /// The tensor again, for the backward of `node`.
    ///
    /// # Errors
    /// Those of node creation hooks.
    pub fn unpack(self, node: &NodeRef<E>) -> Result<DynTensor<E>> {
        Ok(match self {
            Self::Plain(tensor) => tensor,
            Self::Output { array, position } => {
                DynTensor::with_origin(array, Origin::Edge(Edge::new(NodeRef::clone(node), position)))
            }
            // What its derivative would be matters only if this backward is recorded.
            Self::Intermediate(array) if grad_mode::is_enabled() => saved_intermediate(node, array)?,
            Self::Intermediate(array) => DynTensor::from_array(array),
        })
    }
}

impl<E: Engine> fmt::Debug for SavedTensor<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(tensor) => tensor.fmt(f),
            Self::Output { position, .. } => write!(f, "output {position}"),
            Self::Intermediate(array) => write!(f, "intermediate {} {}", array.dtype(), array.shape()),
        }
    }
}
