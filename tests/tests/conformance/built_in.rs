//! The built-in operations that the cases put between Functions, by the names that PyTorch has for them.

use gradpact::{DType, DynTensor, Result, Shape};

use crate::num;
use crate::outcome::Outcome;

/// An operation that changes nothing and is recorded, as `clone` in PyTorch: the sum with zero.
pub(crate) fn same(x: &DynTensor) -> Result<DynTensor> {
    x.add(&num::full(x.dtype(), x.shape().clone(), 0.0))
}

/// `a * b`.
pub(crate) fn mul(a: &DynTensor, b: &DynTensor) -> Result<DynTensor> {
    a.mul(b)
}

/// `x * 2`.
pub(crate) fn doubled(x: &DynTensor) -> Result<DynTensor> {
    x.mul_scalar(2.0)
}

/// The sum of all elements.
pub(crate) fn sum(x: &DynTensor) -> Result<DynTensor> {
    x.sum()
}

/// An operation from two elements to a scalar, and its gradient at [1, 2].
pub(crate) struct Down {
    /// The operation.
    pub(crate) apply: fn(&DynTensor) -> Result<DynTensor>,
    /// The dtype in which PyTorch computes, and so sends the gradient.
    pub(crate) dtype: DType,
    /// The dtype of the result here.
    pub(crate) loss: DType,
    /// The gradient.
    pub(crate) gradient: [f64; 2],
    /// Whether PyTorch rounds it to f16 before the contract sees it.
    pub(crate) rounds: bool,
    /// Whether the gradient is exact in floating point.
    pub(crate) exact: bool,
}

fn zeros() -> DynTensor {
    num::full(DType::F32, 2, 0.0)
}

fn unit() -> DynTensor {
    num::full(DType::F32, 2, 1.0)
}

fn wide(y: &DynTensor) -> Result<DynTensor> {
    y.cast(DType::F32)
}

/// The operations that [`down`] knows.
pub(crate) const NAMES: [&str; 22] = [
    "y.float().sum()",
    "y.to(float32).sum()",
    "y.double().sum()",
    "y.sum(dtype=float32)",
    "y.clone().sum(dtype=float32)",
    "y.sum()",
    "y.mean(dtype=float32)",
    "y.cumsum(dtype=float32).sum()",
    "y.prod(dtype=float32)",
    "(y + zeros_f32).sum()",
    "(y - zeros_f32).sum()",
    "(y * ones_f32).sum()",
    "(y / ones_f32).sum()",
    "(y ** ones_f32).sum()",
    "(y + f32_scalar_tensor).sum()",
    "torch.maximum(y, zeros_f32).sum()",
    "torch.where(c, y, zeros_f32).sum()",
    "torch.cat([y, zeros_f32]).sum()",
    "softmax(y, dtype=float32)[0]",
    "mse_loss(y, zeros_f32)",
    "vector_norm(y, dtype=float32)",
    "(y @ ones_f16).float()",
];

/// The operation of `1.down/NAME/…`; `None` if it changes a tensor in place.
pub(crate) fn down(name: &str) -> Option<Down> {
    let exact = true;
    let with = |apply: fn(&DynTensor) -> Result<DynTensor>, gradient, rounds| {
        Some(Down { apply, dtype: DType::F32, loss: DType::F32, gradient, rounds, exact })
    };
    let ones = [1.0, 1.0];
    let e = core::f64::consts::E;
    match name {
        "y.float().sum()" | "y.to(float32).sum()" => with(|y| wide(y)?.sum(), ones, true),
        "y.double().sum()" => Some(Down {
            apply: |y| y.cast(DType::F64)?.sum(),
            dtype: DType::F64,
            loss: DType::F64,
            gradient: ones,
            rounds: true,
            exact,
        }),
        "y.sum(dtype=float32)" => with(|y| y.sum_in(DType::F32), ones, false),
        "y.clone().sum(dtype=float32)" => with(|y| same(y)?.sum_in(DType::F32), ones, true),
        "y.sum()" => with(DynTensor::sum, ones, true).map(|down| Down { loss: DType::F16, ..down }),
        "y.mean(dtype=float32)" => with(|y| y.mean_in(DType::F32), [0.5, 0.5], false),
        "y.cumsum(dtype=float32).sum()" => with(
            |y| {
                let y = wide(y)?;
                y.narrow(0, 0, 1)?.sum()?.add(&y.sum()?)
            },
            [2.0, 1.0],
            true,
        ),
        "y.prod(dtype=float32)" => {
            with(|y| wide(y)?.narrow(0, 0, 1)?.mul(&wide(y)?.narrow(0, 1, 1)?)?.sum(), [2.0, 1.0], false)
        }
        "(y + zeros_f32).sum()" => with(|y| y.add(&zeros())?.sum(), ones, false),
        "(y - zeros_f32).sum()" => with(|y| y.sub(&zeros())?.sum(), ones, false),
        "(y * ones_f32).sum()" => with(|y| y.mul(&unit())?.sum(), ones, false),
        "(y / ones_f32).sum()" => with(|y| y.div(&unit())?.sum(), ones, false),
        "(y ** ones_f32).sum()" => with(|y| y.pow(&unit())?.sum(), ones, false),
        // A zero-dimensional tensor promotes nothing in PyTorch; here an operand is an operand.
        "(y + f32_scalar_tensor).sum()" => {
            with(|y| y.add(&num::full(DType::F32, Shape::scalar(), 0.0))?.sum(), ones, true)
        }
        "torch.maximum(y, zeros_f32).sum()" => with(|y| y.maximum(&zeros())?.sum(), ones, false),
        "torch.where(c, y, zeros_f32).sum()" => {
            with(|y| num::full(DType::Bool, 2, 1.0).where_cond(y, &zeros())?.sum(), ones, false)
        }
        "torch.cat([y, zeros_f32]).sum()" => with(|y| DynTensor::cat(&[y, &zeros()], 0)?.sum(), ones, false),
        "softmax(y, dtype=float32)[0]" => {
            let p = 1.0 / (1.0 + e);
            let gradient = [p * (1.0 - p), -p * (1.0 - p)];
            let apply: fn(&DynTensor) -> Result<DynTensor> = |y| wide(y)?.softmax(0)?.narrow(0, 0, 1)?.sum();
            Some(Down { apply, dtype: DType::F32, loss: DType::F32, gradient, rounds: true, exact: false })
        }
        "mse_loss(y, zeros_f32)" => with(|y| wide(y)?.mse(&zeros()), [1.0, 2.0], true),
        "vector_norm(y, dtype=float32)" => {
            let norm = 5_f64.sqrt();
            let apply: fn(&DynTensor) -> Result<DynTensor> = |y| wide(y)?.mul(&wide(y)?)?.sum()?.sqrt();
            let gradient = [1.0 / norm, 2.0 / norm];
            Some(Down { apply, dtype: DType::F32, loss: DType::F32, gradient, rounds: true, exact: false })
        }
        "(y @ ones_f16).float()" => with(
            |y| wide(&y.reshape([1, 2])?.matmul(&num::full(DType::F16, [2, 1], 1.0))?)?.sum(),
            ones,
            true,
        ),
        _ => None,
    }
}

/// Whether both have the same dtypes, and values that differ by a few units in the last place of f32.
pub(crate) fn close(a: &Outcome, b: &Outcome) -> bool {
    let nums = |outcome: &Outcome| {
        outcome.received.iter().flatten().chain([&outcome.x_grad]).flatten().cloned().collect::<Vec<_>>()
    };
    let near = |x: f64, y: f64| (x - y).abs() <= 1e-6 * y.abs();
    let (a, b) = (nums(a), nums(b));
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| {
            a.dtype == b.dtype && a.values().into_iter().zip(b.values()).all(|(x, y)| near(x, y))
        })
}
