//! Functions for tests: each storage dtype with each gradient dtype, several outputs, and what goes wrong.

use core::marker::PhantomData;

use gradpact_torch::Torch;
use gradpact_torch::prelude::*;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_tch::PyTensor;

use crate::received::Received;
use crate::tensor::{apply, apply_one, released};

/// `x` and perhaps `w`. Their gradients are left in whatever dtype comes of multiplying what was received.
type Factors<D> = (Tensor<D, AnyGrad>, Option<Tensor<D, AnyGrad>>);

fn scale_forward<D: Float>(ctx: &mut Context, (x, w): (Value<D>, Option<Value<D>>)) -> Result<Value<D>> {
    ctx.save_for_backward((&x, &w));
    match w {
        Some(w) => Value::from_tch(&*x * &*w),
        // The input as it is: libtorch makes a view of it.
        None => Ok(x),
    }
}

fn scale_backward<D: Float>(
    ctx: &Context,
    received: &Received,
    grad: &tch::Tensor,
) -> Result<(DynTensor, Option<DynTensor>)> {
    received.note(grad);
    let (x, w): (Value<D>, Option<Value<D>>) = ctx.saved()?;
    let Some(w) = w else { return Ok((DynTensor::from_tch(grad.shallow_clone())?, None)) };
    Ok((DynTensor::from_tch(grad * &*w)?, Some(DynTensor::from_tch(grad * &*x)?)))
}

/// Says nothing of its gradient.
#[autograd_function(out = D)]
struct Undeclared<D: Float> {
    received: Received,
    stored: PhantomData<D>,
}

impl<D: Float> Op<Torch> for Undeclared<D> {
    type Inputs = Factors<D>;

    fn forward(&self, ctx: &mut Context, inputs: (Value<D>, Option<Value<D>>)) -> Result<Value<D>> {
        scale_forward(ctx, inputs)
    }

    fn backward(&self, ctx: &Context, grad: Value<D>) -> Result<(DynTensor, Option<DynTensor>)> {
        scale_backward::<D>(ctx, &self.received, &grad)
    }
}

/// Takes its gradient as it comes.
#[autograd_function(out = D, grad = any)]
struct Unconverted<D: Float> {
    received: Received,
    stored: PhantomData<D>,
}

impl<D: Float> Op<Torch> for Unconverted<D> {
    type Inputs = Factors<D>;

    fn forward(&self, ctx: &mut Context, inputs: (Value<D>, Option<Value<D>>)) -> Result<Value<D>> {
        scale_forward(ctx, inputs)
    }

    fn backward(&self, ctx: &Context, grad: DynTensor) -> Result<(DynTensor, Option<DynTensor>)> {
        scale_backward::<D>(ctx, &self.received, grad.array())
    }
}

/// Is stored as `D` and takes its gradient as `G`.
#[autograd_function(out = D, grad = G)]
struct Declared<D: Float, G: Float> {
    received: Received,
    dtypes: PhantomData<(D, G)>,
}

impl<D: Float, G: Float> Op<Torch> for Declared<D, G> {
    type Inputs = Factors<D>;

    fn forward(&self, ctx: &mut Context, inputs: (Value<D>, Option<Value<D>>)) -> Result<Value<D>> {
        scale_forward(ctx, inputs)
    }

    fn backward(&self, ctx: &Context, grad: Value<G>) -> Result<(DynTensor, Option<DynTensor>)> {
        scale_backward::<D>(ctx, &self.received, &grad)
    }
}

struct Call<'py> {
    py: Python<'py>,
    inputs: Vec<Option<PyTensor>>,
    received: Received,
}

impl Call<'_> {
    fn stored_as<D: Float>(self, grad: &str) -> PyResult<PyTensor> {
        match grad {
            "undeclared" => {
                let received = self.received;
                apply_one(self.py, Undeclared::<D> { received, stored: PhantomData }, self.inputs)
            }
            "any" => {
                let received = self.received;
                apply_one(self.py, Unconverted::<D> { received, stored: PhantomData }, self.inputs)
            }
            "float16" => self.declared::<D, f16>(),
            "bfloat16" => self.declared::<D, bf16>(),
            "float32" => self.declared::<D, f32>(),
            "float64" => self.declared::<D, f64>(),
            other => Err(PyValueError::new_err(format!("no gradient dtype: {other}"))),
        }
    }

    fn declared<D: Float, G: Float>(self) -> PyResult<PyTensor> {
        let received = self.received;
        apply_one(self.py, Declared::<D, G> { received, dtypes: PhantomData }, self.inputs)
    }
}

/// `x` as it is, or `x·w`, stored in their dtype `out`. `grad` is "undeclared", "any" or a dtype; dtypes are written as in
/// `torch.float32`, without `torch`.
#[pyfunction]
#[pyo3(signature = (x, w, out, grad, received))]
pub(crate) fn scale(
    py: Python<'_>,
    x: PyTensor,
    w: Option<PyTensor>,
    out: &str,
    grad: &str,
    received: Received,
) -> PyResult<PyTensor> {
    let call = Call { py, inputs: vec![Some(x), w], received };
    match out {
        "float16" => call.stored_as::<f16>(grad),
        "bfloat16" => call.stored_as::<bf16>(grad),
        "float32" => call.stored_as::<f32>(grad),
        "float64" => call.stored_as::<f64>(grad),
        other => Err(PyValueError::new_err(format!("no storage dtype: {other}"))),
    }
}

/// A tensor and its double, with gradients of two dtypes.
#[autograd_function(out = (f16, f16), grad = (f32, f64))]
struct Split {
    received: Received,
}

impl Op<Torch> for Split {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<(Value<f16>, Value<f16>)> {
        let half = x.to_kind(tch::Kind::Half);
        let double = &half * 2.0;
        Ok((Value::from_tch(half)?, Value::from_tch(double)?))
    }

    fn backward(&self, _: &Context, (once, twice): (Value<f32>, Value<f64>)) -> Result<Value<f32>> {
        self.received.note(&once);
        self.received.note(&twice);
        Value::from_tch(&*once + (&*twice * 2.0).to_kind(tch::Kind::Float))
    }
}

/// A float32 tensor twice in float16, the second time doubled; the gradients arrive in float32 and float64.
#[pyfunction]
pub(crate) fn split(py: Python<'_>, x: PyTensor, received: Received) -> PyResult<Vec<PyTensor>> {
    apply(py, Split { received }, vec![Some(x)])
}

/// What can go wrong in a Function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    ForwardError,
    ForwardPanic,
    BackwardError,
    BackwardPanic,
    BackwardShape,
}

#[autograd_function(out = f16, grad = f32)]
struct Fails {
    how: Failure,
}

impl Op<Torch> for Fails {
    type Inputs = Tensor<f16, f32>;

    #[allow(clippy::panic, reason = "that is the failure")]
    fn forward(&self, _: &mut Context, x: Value<f16>) -> Result<Value<f16>> {
        match self.how {
            Failure::ForwardError => Err(Error::custom("an error of the forward")),
            Failure::ForwardPanic => panic!("a panic of the forward"),
            _ => Value::from_tch(&*x * 2.0),
        }
    }

    #[allow(clippy::panic, reason = "that is the failure")]
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        match self.how {
            Failure::BackwardError => Err(Error::custom("an error of the backward")),
            Failure::BackwardPanic => panic!("a panic of the backward"),
            Failure::BackwardShape => Value::from_tch(grad.unsqueeze(0)),
            _ => Ok(grad),
        }
    }
}

/// Doubles a float16 tensor and fails on the way: `phase` is "forward" or "backward", `how` is "error" or "panic", or "shape" for a
/// backward.
#[pyfunction]
pub(crate) fn fail(py: Python<'_>, x: PyTensor, phase: &str, how: &str) -> PyResult<PyTensor> {
    let how = match (phase, how) {
        ("forward", "error") => Failure::ForwardError,
        ("forward", "panic") => Failure::ForwardPanic,
        ("backward", "error") => Failure::BackwardError,
        ("backward", "panic") => Failure::BackwardPanic,
        ("backward", "shape") => Failure::BackwardShape,
        _ => return Err(PyValueError::new_err(format!("no failure of {phase}: {how}"))),
    };
    apply_one(py, Fails { how }, vec![Some(x)])
}

/// Runs libtorch's engine from Rust, through nodes of every origin.
#[pyfunction]
pub(crate) fn backward(py: Python<'_>, root: PyTensor) -> PyResult<()> {
    let root = root.0;
    released(py, move || gradpact_torch::backward(&[(&root, None)], BackwardOptions::new()))
}
