//! A gradient that several backward calls add to.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::edge::{Cut, Origin};
use super::grad_mode;
use super::input_buffer::Sum;
use super::tensor::DynTensor;
use crate::contract::{GradDType, Refusal};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// How often hooks may replace a gradient during one addition to it.
const REPLACED_BY_HOOKS: u32 = 16;

/// An accumulated gradient behind a lock that is never held while anything else runs: adding may record nodes, and so run
/// hooks of the user's, and what is replaced may own anything.
pub(super) struct GradCell<E: Engine>(Mutex<Versioned<E>>);

/// The gradient, how often it was replaced, and by whom last.
struct Versioned<E: Engine> {
    version: u64,
    writer: Option<ThreadId>,
    grad: Option<DynTensor<E>>,
}

impl<E: Engine> Versioned<E> {
    fn is_replaced(&mut self) {
        self.version += 1;
        self.writer = Some(thread::current().id());
    }
}

impl<E: Engine> GradCell<E> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Versioned { version: 0, writer: None, grad: None }))
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
        if grad.is_none() && cell.grad.is_none() {
            return;
        }
        cell.is_replaced();
        let before = core::mem::replace(&mut cell.grad, grad);
        drop(cell);
        drop(before);
    }

    /// Replaces the gradient, if `check` allows it at that moment.
    pub(super) fn set_checked<R>(
        &self,
        grad: DynTensor<E>,
        check: impl FnOnce() -> Result<R, Refusal>,
    ) -> Result<(), Refusal> {
        let mut cell = self.lock();
        check()?;
        cell.is_replaced();
        let before = cell.grad.replace(grad);
        drop(cell);
        drop(before);
        Ok(())
    }

    /// Calls `change` on the gradient, if there is one, while nobody can replace it. Where that changes the gradient dtype, and
    /// says so, an addition that is under way is done again.
    pub(super) fn changing(&self, change: impl FnOnce(Option<&DynTensor<E>>) -> Result<bool>) -> Result<()> {
        let mut cell = self.lock();
        if change(cell.grad.as_ref())? {
            cell.is_replaced();
        }
        Ok(())
    }

    /// Adds an admitted gradient: in the gradient dtype, 8- and 16-bit ones through `f32`. After an error the gradient is as
    /// before.
    ///
    /// What is not recorded has no graph: a saved input that backward returns as it is would else be held by the leaf that it
    /// holds, and never be freed.
    pub(super) fn add(&self, grad: &DynTensor<E>, grad_dtype: impl Fn() -> GradDType) -> Result<()> {
        let unrecorded = match grad.origin().edge() {
            Some(_) if !grad_mode::is_enabled() => {
                Some(DynTensor::with_origin(grad.array().clone(), Origin::Cut(Cut::NoGrad)))
            }
            _ => None,
        };
        let grad = unrecorded.as_ref().unwrap_or(grad);
        let mut replaced = 0;
        loop {
            let (version, before, grad_dtype) = {
                let cell = self.lock();
                (cell.version, cell.grad.clone(), grad_dtype())
            };
            let mut sum = Sum::default();
            if let Some(before) = before {
                sum.add(before, grad_dtype)?;
            }
            sum.add(grad.clone(), grad_dtype)?;
            let sum = sum.deliver(grad_dtype)?;
            let mut cell = self.lock();
            // The gradient or its dtype may have changed meanwhile: then this is done again with what there is now.
            if cell.version == version {
                cell.is_replaced();
                let before = core::mem::replace(&mut cell.grad, sum);
                drop(cell);
                drop(before);
                return Ok(());
            }
            // By this very thread, so by a hook that ran in between. One that does it every time would keep this from
            // ever ending.
            if cell.writer == Some(thread::current().id()) {
                replaced += 1;
                if replaced == REPLACED_BY_HOOKS {
                    return Err(Error::GradReplaced);
                }
            }
        }
    }
}
