//! What the cases share: tensors from values, and Functions made of closures that note what their backward receives.

use std::sync::{Arc, Mutex};

use gradpact::prelude::*;

/// The floating dtypes.
pub const FLOATS: [DType; 6] = DType::FLOATS;

/// A tensor of these values, which `dtype` must hold exactly unless rounding is meant.
pub fn of(dtype: DType, values: &[f64]) -> DynTensor {
    DynTensor::from_slice(values, [values.len()]).unwrap().cast(dtype).unwrap()
}

/// A scalar.
pub fn scalar(dtype: DType, value: f64) -> DynTensor {
    DynTensor::from_slice(&[value], ()).unwrap().cast(dtype).unwrap()
}

/// A leaf.
pub fn leaf(dtype: DType, values: &[f64]) -> DynTensor {
    of(dtype, values).requiring_grad().unwrap()
}

/// A leaf that keeps its gradient in another dtype.
pub fn leaf_in(dtype: DType, grad: DType, values: &[f64]) -> DynTensor {
    of(dtype, values).requiring_grad_in(GradDType::Exactly(grad)).unwrap()
}

/// The elements as `f64`s.
pub fn values(tensor: &DynTensor) -> Vec<f64> {
    tensor.cast(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// The dtype and the elements of a gradient that is there.
pub fn grad(tensor: &DynTensor) -> (DType, Vec<f64>) {
    let grad = tensor.grad().unwrap();
    (grad.dtype(), values(&grad))
}

/// Default options.
pub fn options() -> BackwardOptions {
    BackwardOptions::new()
}

/// What backwards received, call by call, output by output.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<Vec<Option<DynTensor>>>>>);

impl Seen {
    /// Notes the gradients of one call.
    pub fn note(&self, grads: &[Option<DynTensor>]) {
        self.0.lock().unwrap().push(grads.to_vec());
    }

    /// Notes the gradient of a single output.
    pub fn note_one<D, G>(&self, grad: &Tensor<D, G>) {
        self.note(&[Some(grad.as_dyn().clone())]);
    }

    /// How often a backward ran.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Dtype and values of the gradient of one output, in the last call.
    pub fn last(&self, output: usize) -> (DType, Vec<f64>) {
        let calls = self.0.lock().unwrap();
        let grad = calls.last().unwrap()[output].as_ref().unwrap();
        (grad.dtype(), values(grad))
    }
}

type Forward = dyn Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync;
type Backward = dyn Fn(&Context, Gradients) -> Result<Gradients> + Send + Sync;

/// A Function made of closures.
pub struct Custom {
    name: &'static str,
    forward: Box<Forward>,
    backward: Box<Backward>,
}

impl Custom {
    /// A Function of this name.
    pub fn new(
        name: &'static str,
        forward: impl Fn(&mut Context, &Inputs<'_>) -> Result<Outputs> + Send + Sync + 'static,
        backward: impl Fn(&Context, Gradients) -> Result<Gradients> + Send + Sync + 'static,
    ) -> Self {
        Self { name, forward: Box::new(forward), backward: Box::new(backward) }
    }

    /// Stores its input in `out`, declares that if asked to, and passes its gradient on.
    pub fn store(name: &'static str, out: DType, declared: Option<GradDType>, seen: &Seen) -> Self {
        let seen = seen.clone();
        let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
            if let Some(declared) = declared {
                ctx.set_output_grad_dtype(&[declared])?;
            }
            Ok(inputs.get(0)?.cast(out)?.into())
        };
        Self::new(name, forward, move |_, grads| {
            seen.note(&grads);
            Ok(grads)
        })
    }

    /// A scalar of its inputs whose backward sends these gradients, whatever comes.
    pub fn giving(name: &'static str, grads: Vec<Option<DynTensor>>) -> Self {
        Self::new(name, |_, _| Ok(scalar(DType::F32, 0.0).into()), move |_, _| Ok(grads.clone().into()))
    }

    /// Its only output for these inputs.
    pub fn on(self, inputs: &[&DynTensor]) -> DynTensor {
        apply(self, inputs).unwrap()[0].clone()
    }
}

impl Function for Custom {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        (self.forward)(ctx, inputs)
    }

    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
        (self.backward)(ctx, grads)
    }
}

/// Sends one gradient of a scalar loss to each tensor.
pub fn send(targets: &[(&DynTensor, &DynTensor)], options: BackwardOptions) -> Result<()> {
    let losses: Vec<_> = targets
        .iter()
        .map(|(target, grad)| Custom::giving("Loss", vec![Some((*grad).clone())]).on(&[target]))
        .collect();
    let roots: Vec<_> = losses.iter().map(|loss| (loss, None)).collect();
    gradpact::backward(&roots, options)
}
