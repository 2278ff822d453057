//! A gradient that several backward calls add to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::edge::{Cut, Origin};
use super::grad_mode;
use super::input_buffer::Sum;
use super::tensor::DynTensor;
use crate::contract::GradDType;
use crate::engine::Engine;
use crate::error::Result;

/// An accumulated gradient behind a lock that is never held while anything else runs: adding may record nodes, and so run
/// hooks of the user's, and what is replaced may own anything.
pub(super) struct GradCell<E: Engine>(Mutex<Versioned<E>>);

/// The gradient, and how often it was replaced.
struct Versioned<E: Engine> {
    version: u64,
    grad: Option<DynTensor<E>>,
}

impl<E: Engine> GradCell<E> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Versioned { version: 0, grad: None }))
    }

    fn lock(&self) -> MutexGuard<'_, Versioned<E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self) -> Option<DynTensor<E>> {
        self.lock().grad.clone()
    }

    /// Replaces the gradient.
    pub(super) fn set(&self, grad: Option<DynTensor<E>>) {
        let mut cell = self.lock();
        cell.version += 1;
        let before = core::mem::replace(&mut cell.grad, grad);
        drop(cell);
        drop(before);
    }

    /// Calls `check` on the gradient, if there is one, while nobody can replace it.
    pub(super) fn checked<R>(&self, check: impl FnOnce(Option<&DynTensor<E>>) -> R) -> R {
        check(self.lock().grad.as_ref())
    }

    /// Adds an admitted gradient: in the gradient dtype, 8- and 16-bit ones through `f32`. After an error the gradient is as
    /// before.
    pub(super) fn add(&self, grad: &DynTensor<E>, grad_dtype: GradDType) -> Result<()> {
        let grad = &unless_recorded(grad);
        loop {
            let (version, before) = {
                let cell = self.lock();
                (cell.version, cell.grad.clone())
            };
            let mut sum = Sum::default();
            if let Some(before) = before {
                sum.add(before, grad_dtype)?;
            }
            sum.add(grad.clone(), grad_dtype)?;
            let sum = sum.deliver(grad_dtype)?;
            let mut cell = self.lock();
            // Another thread may have added meanwhile: then this is done again with what it left.
            if cell.version == version {
                cell.version += 1;
                let before = core::mem::replace(&mut cell.grad, sum);
                drop(cell);
                drop(before);
                return Ok(());
            }
        }
    }
}

/// The gradient as a backward that records nothing leaves it: without a graph, also where a tracked seed came through
/// unchanged. A leaf that is its own seed would hold itself otherwise.
fn unless_recorded<E: Engine>(grad: &DynTensor<E>) -> DynTensor<E> {
    if grad_mode::is_enabled() || !grad.requires_grad() {
        return grad.clone();
    }
    DynTensor::with_origin(grad.array().clone(), Origin::Cut(Cut::NoGrad))
}
