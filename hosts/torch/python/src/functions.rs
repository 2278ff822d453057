//! Functions for networks in half precision whose gradients are kept in single precision.

use gradpact_torch::prelude::*;
use pyo3::prelude::*;
use pyo3_tch::PyTensor;
use tch::Kind;

use crate::received::Received;
use crate::tensor::{apply_one, name_in_python, released};

/// `x·σ(x)`, computed in single precision and stored in half; its backward receives single precision.
#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op<Torch> for Silu {
    type Inputs = Tensor<f16, f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f16>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        Value::from_tch(x.to_kind(Kind::Float).silu().to_kind(Kind::Half))
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f16> = ctx.saved()?;
        let x = x.to_kind(Kind::Float);
        let s = x.sigmoid();
        Value::from_tch(&*grad * &s * (1.0 + &x * (1.0 - &s)))
    }
}

/// `x·w`, computed in single precision and stored in half; its backward receives single precision, and so do `x` and `w`.
#[autograd_function(out = f16, grad = f32)]
struct Linear {
    received: Option<Received>,
}

impl Op<Torch> for Linear {
    type Inputs = (Tensor<f16, f32>, Tensor<f32>);

    fn forward(&self, ctx: &mut Context, (x, w): (Value<f16>, Value<f32>)) -> Result<Value<f16>> {
        ctx.save_for_backward((&x, &w));
        // What users can get wrong is an error, not a panic of tch.
        let y = x.to_kind(Kind::Float).f_matmul(&w).map_err(Error::custom)?;
        Value::from_tch(y.to_kind(Kind::Half))
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Value<f32>)> {
        if let Some(received) = &self.received {
            received.note(&grad);
        }
        let (x, w): (Value<f16>, Value<f32>) = ctx.saved()?;
        let dx = grad.matmul(&w.mt());
        let dw = x.to_kind(Kind::Float).mt().matmul(&grad);
        Ok((Value::from_tch(dx)?, Value::from_tch(dw)?))
    }
}

/// `x·σ(x)` of a float16 tensor, as float16 with a float32 gradient.
#[pyfunction]
pub(crate) fn silu(py: Python<'_>, x: PyTensor) -> PyResult<PyTensor> {
    apply_one(py, Silu, vec![Some(x)])
}

/// `x·w` of a float16 matrix and a float32 matrix, as float16 with a float32 gradient.
///
/// `received` takes down what backward receives.
#[pyfunction]
#[pyo3(signature = (x, w, received = None))]
pub(crate) fn linear(
    py: Python<'_>,
    x: PyTensor,
    w: PyTensor,
    received: Option<Received>,
) -> PyResult<PyTensor> {
    apply_one(py, Linear { received }, vec![Some(x), Some(w)])
}

/// A float16 tensor in float32. Unlike `x.float()`, whose backward makes float16 of the gradient, it passes the gradient on as it came.
#[pyfunction]
pub(crate) fn widen(py: Python<'_>, x: PyTensor) -> PyResult<PyTensor> {
    released(py, move || {
        let x = Tensor::<f16, f32>::from_tch(x.0)?;
        Ok(PyTensor(x.cast::<f32>()?.into_tch()))
    })
}

/// A float32 tensor in float16, whose gradient stays float32. What `x.half()` gives has its gradient in float16.
#[pyfunction]
pub(crate) fn narrow(py: Python<'_>, x: PyTensor) -> PyResult<PyTensor> {
    released(py, move || {
        let x = Tensor::<f32>::from_tch(x.0)?;
        let y: Tensor<f16, f32> = x.cast::<f16>()?;
        Ok(PyTensor(y.into_tch()))
    })
}

/// The dtype in which the gradient of a tensor arrives, as its graph has it: such as "float32", or "any"; None if it has no gradient.
#[pyfunction]
pub(crate) fn grad_dtype(py: Python<'_>, tensor: PyTensor) -> PyResult<Option<String>> {
    let grad_dtype = released(py, move || gradpact_torch::grad_dtype(&tensor))?;
    Ok(grad_dtype.map(|grad_dtype| match grad_dtype {
        GradDType::Any => "any".to_owned(),
        GradDType::Exactly(dtype) => name_in_python(dtype).to_owned(),
    }))
}
