//! Tensors from values, and a Function made of closures.

use gradpact::prelude::*;
use gradpact::testing::GradcheckReport;

/// The report of a check, passed or not.
pub(crate) trait Found {
    fn found(self) -> GradcheckReport;
}

impl Found for Result<GradcheckReport> {
    fn found(self) -> GradcheckReport {
        self.unwrap_or_else(|error| match error.downcast_ref::<GradcheckReport>() {
            Some(report) => report.clone(),
            None => panic!("{error}"),
        })
    }
}

/// A tensor of these values, rounded to `dtype`.
pub(crate) fn of(dtype: DType, values: &[f64], shape: impl Into<Shape>) -> DynTensor {
    DynTensor::from_slice(values, shape).unwrap().cast(dtype).unwrap()
}

type Forward = dyn Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync;
type Backward = dyn Fn(&Context, Gradients) -> Result<Gradients> + Send + Sync;

/// A Function made of two closures.
pub(crate) struct Custom {
    forward: Box<Forward>,
    backward: Box<Backward>,
}

impl Custom {
    pub(crate) fn new(
        forward: impl Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync + 'static,
        backward: impl Fn(&Context, Gradients) -> Result<Gradients> + Send + Sync + 'static,
    ) -> Self {
        Self { forward: Box::new(forward), backward: Box::new(backward) }
    }

    /// Twice its input, stored and declared so, with this backward, which is given the gradient.
    pub(crate) fn double(
        out: DType,
        grad: Option<GradDType>,
        backward: impl Fn(&DynTensor) -> Result<DynTensor> + Send + Sync + 'static,
    ) -> Self {
        let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
            if let Some(grad) = grad {
                ctx.set_output_grad_dtype(&[grad])?;
            }
            Ok(inputs.get(0)?.mul_scalar(2.0)?.cast(out)?.into())
        };
        Self::new(forward, move |_, grads| Ok(backward(grads[0].as_ref().unwrap())?.into()))
    }
}

impl Function for Custom {
    fn name(&self) -> &'static str {
        "Custom"
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        (self.forward)(ctx, inputs)
    }

    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
        (self.backward)(ctx, grads)
    }
}

/// The gradient of the only output.
pub(crate) fn only(grads: &Gradients) -> &DynTensor {
    grads[0].as_ref().unwrap()
}
