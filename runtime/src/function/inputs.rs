//! The inputs of a forward, by position.

use core::fmt;

use crate::autograd::DynTensor;
use crate::engine::{Cpu, Engine};
use crate::error::{Error, Place, Result};

/// The tensors that a Function was applied to. An optional one may be absent.
pub struct Inputs<'a, E: Engine = Cpu> {
    function: &'static str,
    tensors: &'a [Option<&'a DynTensor<E>>],
}

impl<'a, E: Engine> Inputs<'a, E> {
    pub(crate) fn new(function: &'static str, tensors: &'a [Option<&'a DynTensor<E>>]) -> Self {
        Self { function, tensors }
    }

    /// The input at `position`.
    ///
    /// # Errors
    /// [`Error::AbsentInput`] if it was not given.
    pub fn get(&self, position: usize) -> Result<&'a DynTensor<E>> {
        let absent = || Error::AbsentInput(Box::new(Place::input(self.function, position)));
        self.optional(position).ok_or_else(absent)
    }

    /// The input at `position`, if it was given.
    pub fn optional(&self, position: usize) -> Option<&'a DynTensor<E>> {
        self.tensors.get(position).copied().flatten()
    }

    /// How many positions there are, absent ones included.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// All positions in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a DynTensor<E>>> + '_ {
        self.tensors.iter().copied()
    }

    /// The Function's name.
    pub fn function(&self) -> &'static str {
        self.function
    }
}

impl<E: Engine> fmt::Debug for Inputs<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tensors).finish()
    }
}
