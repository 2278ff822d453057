//! The Functions that the cases are made of: they note what their backward receives.

use core::fmt;
use std::sync::{Arc, Mutex};

use gradpact::{Context, DType, Function, GradDType, Gradients, Inputs, Outputs, Result, Shape, apply};

use super::num::Num;
use super::subject::{Dyn, Of, Subject};

/// What the backwards of some Functions received, call by call.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Vec<Option<Num>>>>>);

impl Log {
    /// Everything so far.
    pub fn calls(&self) -> Vec<Vec<Option<Num>>> {
        self.0.lock().unwrap().clone()
    }

    /// The first output's gradient of every call.
    pub fn firsts(&self) -> Vec<Option<Num>> {
        self.calls().into_iter().map(|mut call| call.swap_remove(0)).collect()
    }

    /// Adds a call with one gradient.
    pub fn push(&self, grad: Num) {
        self.0.lock().unwrap().push(vec![Some(grad)]);
    }

    fn note<S: Subject>(&self, grads: &[Option<Dyn<S>>]) {
        self.0.lock().unwrap().push(grads.iter().map(|grad| grad.as_ref().map(S::read)).collect());
    }
}

type Forward<E> = dyn Fn(&mut Context<E>, &Inputs<'_, E>) -> Result<Outputs<E>> + Send + Sync;
type Backward<E> = dyn Fn(&Context<E>, Gradients<E>) -> Result<Gradients<E>> + Send + Sync;

/// A Function made of closures, called `F` as in the measured cases.
pub struct Probe<S: Subject> {
    log: Log,
    forward: Box<Forward<Of<S>>>,
    backward: Box<Backward<Of<S>>>,
}

impl<S: Subject> Probe<S> {
    /// Its backward returns the first gradient that came.
    pub fn new(
        log: &Log,
        forward: impl Fn(&mut Context<Of<S>>, &Inputs<'_, Of<S>>) -> Result<Outputs<Of<S>>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let backward = |_: &Context<Of<S>>, grads: Gradients<Of<S>>| {
            Ok(Gradients::from(vec![grads.into_iter().flatten().next()]))
        };
        Self { log: log.clone(), forward: Box::new(forward), backward: Box::new(backward) }
    }

    /// Rounds its input to `out`.
    pub fn cast(log: &Log, out: DType, declared: Option<GradDType>) -> Self {
        Self::new(log, move |ctx, inputs| {
            if let Some(declared) = declared {
                ctx.set_output_grad_dtype(&[declared])?;
            }
            Ok(inputs.get(0)?.cast(out)?.into())
        })
    }

    /// With another backward.
    pub fn backward(
        mut self,
        backward: impl Fn(&Context<Of<S>>, Gradients<Of<S>>) -> Result<Gradients<Of<S>>> + Send + Sync + 'static,
    ) -> Self {
        self.backward = Box::new(backward);
        self
    }

    /// Applies it to one tensor.
    ///
    /// # Errors
    /// What it reports.
    pub fn on(self, x: &Dyn<S>) -> Result<Outputs<Of<S>>> {
        apply(self, &[x])
    }
}

impl<S: Subject> fmt::Debug for Probe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("log", &self.log).finish_non_exhaustive()
    }
}

impl<S: Subject> Function<Of<S>> for Probe<S> {
    fn name(&self) -> &'static str {
        "F"
    }

    fn forward(&self, ctx: &mut Context<Of<S>>, inputs: &Inputs<'_, Of<S>>) -> Result<Outputs<Of<S>>> {
        (self.forward)(ctx, inputs)
    }

    fn backward(&self, ctx: &Context<Of<S>>, grads: Gradients<Of<S>>) -> Result<Gradients<Of<S>>> {
        self.log.note::<S>(&grads);
        (self.backward)(ctx, grads)
    }
}

/// A consumer of one tensor: a scalar whose backward returns a gradient of its own.
pub struct Giver<S: Subject>(Box<dyn Fn() -> Option<Dyn<S>> + Send + Sync>);

impl<S: Subject> Giver<S> {
    /// Returns no gradient.
    pub fn nothing() -> Self {
        Self(Box::new(|| None))
    }

    /// Returns this gradient, which it keeps.
    pub fn kept(grad: Dyn<S>) -> Self {
        Self(Box::new(move || Some(grad.clone())))
    }

    /// Returns a gradient that it makes anew, so that nobody else holds it.
    pub fn fresh(grad: Num) -> Self {
        Self(Box::new(move || Some(S::vector(&grad))))
    }
}

impl<S: Subject> fmt::Debug for Giver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Giver").finish_non_exhaustive()
    }
}

impl<S: Subject> Function<Of<S>> for Giver<S> {
    fn name(&self) -> &'static str {
        "Giver"
    }

    fn forward(&self, _: &mut Context<Of<S>>, _: &Inputs<'_, Of<S>>) -> Result<Outputs<Of<S>>> {
        Ok(S::full(DType::F32, Shape::scalar(), 1.0).into())
    }

    fn backward(&self, _: &Context<Of<S>>, _: Gradients<Of<S>>) -> Result<Gradients<Of<S>>> {
        Ok(Gradients::from(vec![(self.0)()]))
    }
}
