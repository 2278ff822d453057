//! What an audit tells, and that it tells it however the program goes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod comparison;
mod conversions;
mod expectations;
mod hard_ways;
mod pictures;
mod reports;
mod round_trips;
mod rows;
mod tracing_events;

use gradpact::prelude::*;

/// A tensor of these values.
fn of(dtype: DType, values: &[f64]) -> DynTensor {
    DynTensor::from_slice(values, [values.len()]).unwrap().cast(dtype).unwrap()
}

/// A leaf that keeps its gradient in this dtype.
fn leaf_in(dtype: DType, grad: DType, values: &[f64]) -> DynTensor {
    of(dtype, values).requiring_grad_in(GradDType::Exactly(grad)).unwrap()
}

/// Stores its input in `out`, declares that if asked to, and passes its gradient on.
struct Store {
    name: &'static str,
    out: DType,
    declared: Option<GradDType>,
}

impl Store {
    fn new(name: &'static str, out: DType, declared: Option<DType>) -> Self {
        Self { name, out, declared: declared.map(GradDType::Exactly) }
    }

    fn on(self, x: &DynTensor) -> DynTensor {
        apply(self, &[x]).unwrap()[0].clone()
    }
}

impl Function for Store {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        if let Some(declared) = self.declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        Ok(inputs.get(0)?.cast(self.out)?.into())
    }

    fn backward(&self, _: &Context, grads: Gradients) -> Result<Gradients> {
        Ok(grads)
    }
}

/// A Function whose backward is a closure.
struct Custom<B>(&'static str, B);

impl<B: Fn(&DynTensor) -> Result<DynTensor> + Send + Sync + 'static> Function for Custom<B> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        ctx.set_output_grad_dtype(&[GradDType::Any])?;
        Ok(inputs.get(0)?.clone().into())
    }

    fn backward(&self, _: &Context, grads: Gradients) -> Result<Gradients> {
        Ok((self.1)(grads[0].as_ref().unwrap())?.into())
    }
}

/// Sends a gradient.
fn send(to: &DynTensor, grad: &DynTensor) -> Result<()> {
    to.backward_with(grad, BackwardOptions::new())
}
