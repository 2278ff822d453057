//! Functions and tensors that several tests use.

use std::sync::{Arc, Mutex};

use gradpact::engine::Array as _;
use gradpact::prelude::*;
use gradpact::{GradDType, List};
use gradpact_torch::{Array, FromTch, Torch};
use tch::Kind;

pub(crate) type Dyn = DynTensor<Torch>;

/// A tensor of these values.
pub(crate) fn values(values: &[f64], kind: Kind) -> tch::Tensor {
    tch::Tensor::from_slice(values).to_kind(kind)
}

/// A leaf of these values.
pub(crate) fn leaf(of: &[f64], kind: Kind) -> tch::Tensor {
    values(of, kind).set_requires_grad(true)
}

pub(crate) fn dynamic(tensor: &tch::Tensor) -> Dyn {
    Dyn::from_tch(tensor.shallow_clone()).unwrap()
}

/// The values as `f64`.
pub(crate) fn read(tensor: &tch::Tensor) -> Vec<f64> {
    Vec::try_from(tensor.detach().to_kind(Kind::Double).reshape([-1])).unwrap()
}

/// What a backward received: dtype and first value.
pub(crate) type Log = Arc<Mutex<Vec<(DType, f64)>>>;

pub(crate) fn seen(log: &Log) -> Vec<(DType, f64)> {
    log.lock().unwrap().clone()
}

/// Passes values on as `storage`, with `grad` declared, and notes what its backward receives.
pub(crate) struct Pass {
    pub(crate) storage: DType,
    pub(crate) grad: Option<GradDType>,
    pub(crate) log: Log,
}

impl Pass {
    pub(crate) fn new(storage: DType, grad: impl Into<Option<GradDType>>) -> (Self, Log) {
        let log = Log::default();
        (Self { storage, grad: grad.into(), log: log.clone() }, log)
    }
}

impl Function<Torch> for Pass {
    fn name(&self) -> &'static str {
        "Pass"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        if let Some(grad) = self.grad {
            ctx.set_output_grad_dtype(&[grad])?;
        }
        Ok(inputs.get(0)?.cast(self.storage)?.into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        let grad = grads[0].as_ref().unwrap();
        self.log.lock().unwrap().push((grad.dtype(), read(grad.array())[0]));
        Ok(grads)
    }
}

/// A scalar whose gradient with respect to every element of each input is `grad`, in `dtype`.
pub(crate) struct Sends {
    pub(crate) grad: f64,
    pub(crate) dtype: DType,
}

impl Function<Torch> for Sends {
    fn name(&self) -> &'static str {
        "Sends"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        let inputs: Vec<&Dyn> = inputs.iter().flatten().collect();
        ctx.save_for_backward(&inputs.iter().copied().cloned().collect::<Vec<_>>()[..]);
        Ok(array(tch::Tensor::zeros([], (Kind::Float, tch::Device::Cpu))).into())
    }

    fn backward(&self, ctx: &Context<Torch>, _: Gradients<Torch>) -> Result<Gradients<Torch>> {
        ctx.saved_tensors()?
            .iter()
            .map(|input| {
                Array::full(input.shape(), self.grad, self.dtype).map(|grad| Some(Dyn::from_array(grad)))
            })
            .collect()
    }
}

pub(crate) fn array(tensor: tch::Tensor) -> Dyn {
    Dyn::from_array(Array::new("test", tensor).unwrap())
}

/// Applies a dynamic Function to tensors of tch.
pub(crate) fn call(function: impl Function<Torch>, inputs: &[&tch::Tensor]) -> Result<Vec<tch::Tensor>> {
    let inputs: Vec<Dyn> = inputs.iter().map(|input| dynamic(input)).collect();
    let outputs: List<Dyn> = apply(function, &inputs.iter().collect::<Vec<_>>())?;
    Ok(outputs.into_iter().map(FromTch::into_tch).collect())
}

pub(crate) fn backward(root: &tch::Tensor) -> Result<()> {
    gradpact_torch::backward(&[(root, None)], BackwardOptions::new())
}
