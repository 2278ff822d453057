//! Calling a Function on typed tensors.

use super::op::{Contract, Op};
use super::tensors::{OutputTensors, Tensors};
use crate::error::Result;
use crate::function::Graph;

/// Gives every Function with a contract its method `apply`.
pub trait Apply: Contract + Sized {
    /// Runs the Function on `inputs` and records one node, if one of them is tracked and recording is on.
    ///
    /// Takes one reference, or a tuple of them. The Function moves into the node; a clone of one that is cheap to clone,
    /// or through the dynamic layer an [`Arc`](std::sync::Arc) of one, can be applied again.
    ///
    /// # Errors
    /// What forward reports, with the Function's name; a panic in it; and mistakes in what it declared.
    fn apply<E: Graph>(
        self,
        inputs: <<Self as Op<E>>::Inputs as Tensors<E>>::Refs<'_>,
    ) -> Result<Self::Outputs<E>>
    where
        Self: Op<E>;
}

impl<F: Contract> Apply for F {
    fn apply<E: Graph>(
        self,
        inputs: <<Self as Op<E>>::Inputs as Tensors<E>>::Refs<'_>,
    ) -> Result<Self::Outputs<E>>
    where
        Self: Op<E>,
    {
        let outputs =
            <<Self as Op<E>>::Inputs as Tensors<E>>::with_dyn(inputs, |inputs| self.record(inputs))?;
        Self::Outputs::<E>::tensors(core::any::type_name::<Self>(), outputs)
    }
}
