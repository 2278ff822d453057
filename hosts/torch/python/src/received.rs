//! A list of what backwards received, for whoever wants to look at it from Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3_tch::PyTensor;

/// Takes down the gradients that the Functions to which it is given receive in backward.
#[pyclass(frozen, module = "gradpact_torch")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    grads: Arc<Mutex<Vec<tch::Tensor>>>,
}

#[pymethods]
impl Received {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The gradients since the last call, in the order in which they came.
    fn take(&self) -> Vec<PyTensor> {
        let grads = core::mem::take(&mut *self.grads.lock().unwrap_or_else(PoisonError::into_inner));
        grads.into_iter().map(PyTensor).collect()
    }
}

impl Received {
    /// Keeps a copy: whoever sent the gradient may change it afterwards.
    pub(crate) fn note(&self, grad: &tch::Tensor) {
        let copy = grad.detach().copy();
        self.grads.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
    }
}
