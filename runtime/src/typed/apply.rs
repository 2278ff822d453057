//! Calling a Function on typed tensors.

use super::op::{Contract, Op};
use super::tensors::{OutputTensors, Tensors};
use crate::engine::Engine;
use crate::error::Result;
use crate::function::{Function, apply_optional};

/// Gives every Function with a contract its method `apply`.
pub trait Apply: Contract + Sized {
    /// Runs the Function on `inputs` and records one node, if one of them is tracked and recording is on.
    ///
    /// Takes one reference, or a tuple of them. The Function moves into the node; a clone of one that is cheap to clone,
    /// or an [`Arc`](std::sync::Arc) through the dynamic layer, can be applied again.
    ///
    /// # Errors
    /// What forward reports, with the Function's name; a panic in it; and mistakes in what it declared.
    fn apply<E: Engine>(
        self,
        inputs: <<Self as Op<E>>::Inputs as Tensors<E>>::Refs<'_>,
    ) -> Result<Self::Outputs<E>>
    where
        Self: Op<E> + Function<E>;
}

impl<F: Contract> Apply for F {
    fn apply<E: Engine>(
        self,
        inputs: <<Self as Op<E>>::Inputs as Tensors<E>>::Refs<'_>,
    ) -> Result<Self::Outputs<E>>
    where
        Self: Op<E> + Function<E>,
    {
        let name = self.name();
        let outputs =
            <<Self as Op<E>>::Inputs as Tensors<E>>::with_dyn(inputs, |inputs| apply_optional(self, inputs))?;
        Self::Outputs::<E>::tensors(name, outputs)
    }
}
