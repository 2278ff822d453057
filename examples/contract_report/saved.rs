//! What a Function saved for its backward, and what hooks made of it: nothing is kept in another dtype without a line here.

use gradpact::autograd::{checkpoint, save_in, saved_tensors_hooks};
use gradpact::prelude::*;
use serde::Serialize;

/// `x²`, stored in f16; its backward receives f32, and needs `x` again.
#[autograd_function(out = f16, grad = f32)]
#[derive(Clone)]
struct Square;

impl Op for Square {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.mul(&x)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        grad.mul(&x)?.mul_scalar(2.0)
    }
}

/// One line of the second table.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    applied: &'static str,
    saved: String,
    /// dx = 2·x·g for x = 1.001 and g = 0.1.
    gradient_of_x: f32,
}

pub(crate) const HEADINGS: [&str; 3] = ["applied", "saved for backward", "gradient of x = 1.001"];

impl Line {
    pub(crate) fn cells(&self) -> Vec<String> {
        vec![self.applied.to_owned(), self.saved.clone(), self.gradient_of_x.to_string()]
    }
}

type Applied = Result<Tensor<f16, f32>>;

/// Applies [`Square`] in one way, and reports what its node keeps.
fn report(applied: &'static str, apply: impl FnOnce(&Tensor<f32>) -> Applied) -> Result<Line> {
    let x = Tensor::<f32>::from_vec(vec![1.001], [1])?.requiring_grad()?;
    let y = apply(&x)?;
    let saved = y.as_dyn().grad_fn().map(|node| node.saved_tensors()).unwrap_or_default();
    y.backward_with(&Tensor::<f32>::full([1], 0.1)?, BackwardOptions::new())?;
    let gradient = x.grad().ok_or_else(|| Error::custom("no gradient arrived"))?;
    Ok(Line {
        applied,
        saved: saved.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        gradient_of_x: gradient.item()?,
    })
}

/// Every way to keep what is saved.
pub(crate) fn all() -> Result<Vec<Line>> {
    let pack = |tensor: &DynTensor| tensor.to_vec::<f32>();
    let unpack = |values: &Vec<f32>| DynTensor::from_slice(values, [values.len()]);
    Ok(vec![
        report("as it is", |x| Square.apply(x))?,
        report("in `save_in(DType::F16, …)`", |x| save_in(DType::F16, || Square.apply(x))?)?,
        report("in `save_in(DType::BF16, …)`", |x| save_in(DType::BF16, || Square.apply(x))?)?,
        report("in `saved_tensors_hooks(…)`", |x| saved_tensors_hooks(pack, unpack, || Square.apply(x)))?,
        report("in `checkpoint(…)`", |x| {
            let x = x.clone();
            checkpoint(move || Square.apply(&x))
        })?,
    ])
}
