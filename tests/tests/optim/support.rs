//! What these tests share: parameters, gradients for them, and a rule of any kind.

use gradpact::optim::{Adam, AdamW, Optimizer, Parameter, Sgd};
use gradpact::prelude::*;

/// The floating dtypes.
pub(crate) const FLOATS: [DType; 6] = DType::FLOATS;

/// A tensor of these values, rounded to `dtype`.
pub(crate) fn of(dtype: DType, values: &[f64]) -> DynTensor {
    DynTensor::from_slice(values, [values.len()]).unwrap().cast(dtype).unwrap()
}

/// A parameter stored in `dtype` that keeps its gradient in `grad`.
pub(crate) fn parameter(dtype: DType, grad: DType, values: &[f64]) -> DynTensor {
    of(dtype, values).requiring_grad_in(GradDType::Exactly(grad)).unwrap()
}

/// The values as `f64`s.
pub(crate) fn values(tensor: &DynTensor) -> Vec<f64> {
    tensor.to_f64_vec().unwrap()
}

/// Gives the parameter a gradient of these values, in the dtype it declares.
pub(crate) fn send(param: &DynTensor, grad: &[f64]) {
    let dtype = param.grad_dtype().and_then(GradDType::dtype).unwrap_or(DType::F64);
    let grad = DynTensor::from_slice(grad, param.shape().clone()).unwrap().cast(dtype).unwrap();
    param.backward_with(&grad, BackwardOptions::new()).unwrap();
}

/// A step of any optimizer, so that tests can go through several.
pub(crate) trait Stepper {
    fn step(&mut self, params: &mut [&mut dyn Parameter]) -> Result<()>;
    fn save(&self) -> Vec<u8>;
    fn load(&mut self, bytes: &[u8]) -> Result<()>;
    fn name(&self) -> String;
}

macro_rules! steppers {
    ($($rule:ty)*) => {$(
        impl Stepper for Optimizer<$rule> {
            fn step(&mut self, params: &mut [&mut dyn Parameter]) -> Result<()> {
                self.step(params)
            }

            fn save(&self) -> Vec<u8> {
                self.to_safetensors().unwrap()
            }

            fn load(&mut self, bytes: &[u8]) -> Result<()> {
                self.load_safetensors(bytes)
            }

            fn name(&self) -> String {
                format!("{:?}", self.rule())
            }
        }
    )*};
}
steppers! { Sgd Adam AdamW }

/// Optimizers of every kind, with every number that they have at work in one of them.
pub(crate) fn every_optimizer(master: bool) -> Vec<Box<dyn Stepper>> {
    let sgd =
        |rule: Sgd| -> Box<dyn Stepper> { Box::new(Optimizer::new(rule).unwrap().master_weights(master)) };
    vec![
        sgd(Sgd::new(0.25)),
        sgd(Sgd::new(0.25).momentum(0.75).dampening(0.3).weight_decay(0.1)),
        sgd(Sgd::new(0.25).momentum(0.75).weight_decay(0.1).nesterov(true)),
        Box::new(
            Optimizer::new(Adam::new(0.25).betas(0.8, 0.9).eps(1e-3).weight_decay(0.1))
                .unwrap()
                .master_weights(master),
        ),
        Box::new(
            Optimizer::new(AdamW::new(0.25).betas(0.6, 0.95).weight_decay(0.2))
                .unwrap()
                .master_weights(master),
        ),
    ]
}

/// The error's text has every part.
#[track_caller]
pub(crate) fn says<T: core::fmt::Debug>(outcome: Result<T>, parts: &[&str]) {
    let text = outcome.unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}
