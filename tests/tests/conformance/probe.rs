//! The Functions that the cases are made of: they note what their backward receives.

use std::sync::{Arc, Mutex};

use gradpact::{
    Context, DType, DynTensor, Function, GradDType, Gradients, Inputs, Outputs, Result, Shape, apply,
};

use crate::num::{self, Num};

/// What the backwards of some Functions received, call by call.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Vec<Option<Num>>>>>);

impl Log {
    /// Everything so far.
    pub fn calls(&self) -> Vec<Vec<Option<Num>>> {
        self.0.lock().unwrap().clone()
    }

    /// The first output's gradient of every call.
    pub fn firsts(&self) -> Vec<Option<DynTensor>> {
        self.calls().into_iter().map(|call| call[0].as_ref().map(Num::vector)).collect()
    }

    fn note(&self, grads: &[Option<DynTensor>]) {
        self.0.lock().unwrap().push(grads.iter().map(|grad| grad.as_ref().map(Num::of)).collect());
    }
}

type Forward = dyn Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync;
type Backward = dyn Fn(&Context, Gradients) -> Result<Gradients> + Send + Sync;

/// A Function made of closures, called `F` as in the measured cases.
pub struct Probe {
    log: Log,
    forward: Box<Forward>,
    backward: Box<Backward>,
}

impl Probe {
    /// Its backward returns the first gradient that came.
    pub fn new(
        log: &Log,
        forward: impl Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync + 'static,
    ) -> Self {
        let backward =
            |_: &Context, grads: Gradients| Ok(Gradients::from(vec![grads.into_iter().flatten().next()]));
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
        backward: impl Fn(&Context, Gradients) -> Result<Gradients> + Send + Sync + 'static,
    ) -> Self {
        self.backward = Box::new(backward);
        self
    }

    /// Applies it to one tensor.
    pub fn on(self, x: &DynTensor) -> Result<Outputs> {
        apply(self, &[x])
    }
}

impl Function for Probe {
    fn name(&self) -> &'static str {
        "F"
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        (self.forward)(ctx, inputs)
    }

    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
        self.log.note(&grads);
        (self.backward)(ctx, grads)
    }
}

/// A consumer of one tensor: a scalar whose backward returns a gradient of its own.
pub struct Giver(pub Option<DynTensor>);

impl Function for Giver {
    fn name(&self) -> &'static str {
        "Giver"
    }

    fn forward(&self, _: &mut Context, _: &Inputs<'_>) -> Result<Outputs> {
        Ok(num::full(DType::F32, Shape::scalar(), 1.0).into())
    }

    fn backward(&self, _: &Context, _: Gradients) -> Result<Gradients> {
        Ok(Gradients::from(vec![self.0.clone()]))
    }
}

/// A leaf of ones.
pub fn ones(dtype: DType, shape: impl Into<Shape>) -> DynTensor {
    num::full(dtype, shape, 1.0).requiring_grad().unwrap()
}
