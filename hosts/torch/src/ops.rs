//! The operations that Functions generic over the engine use, as libtorch has them, recorded in its graph.

use gradpact::engine::Array as _;
use gradpact::ops::{BinaryOp, CmpOp, Ops, ReduceOp, ScalarOp, UnaryOp};
use gradpact::{DType, Error, Result, Shape};
use tch::{Scalar, TchError, Tensor};

use crate::array::{Array, Torch, from_tch};
use crate::dtype::kind;
use crate::error::argument;

type DynTensor = gradpact::DynTensor<Torch>;
type Computed = core::result::Result<Tensor, TchError>;

fn taken(operation: &'static str, computed: Computed) -> Result<DynTensor> {
    Array::new(operation, computed.map_err(|error| from_tch(&error))?).map(DynTensor::from_array)
}

/// `call` for these operands. Those of 8 bits are computed in `f32`, since libtorch has no arithmetic on them; those of 16 bits
/// too if libtorch would round in between (`rounds`): intermediate results, or a number before it adds it.
fn computed<const N: usize>(
    operation: &'static str,
    operands: [&DynTensor; N],
    rounds: bool,
    call: impl FnOnce([&Tensor; N]) -> Computed,
) -> Result<DynTensor> {
    let dtype = operands.first().map_or(DType::F32, |operand| operand.dtype());
    let narrow = match dtype {
        DType::F8E4M3 | DType::F8E5M2 => true,
        DType::F16 | DType::BF16 => rounds,
        _ => false,
    };
    if !narrow {
        return taken(operation, call(operands.map(|operand| operand.array().tensor())));
    }
    let mut wide = Vec::with_capacity(N);
    for operand in operands {
        wide.push(operand.array().cast(DType::F32)?);
    }
    let result = taken(operation, call(core::array::from_fn(|at| wide[at].tensor())))?;
    // Comparisons stay what they are.
    if result.dtype() == DType::F32 { result.cast(dtype) } else { Ok(result) }
}

/// `number` in the dtype of a tensor, which may not hold fractions.
///
/// What libtorch would refuse must be refused before it is called: when a call with a `Scalar` fails, tch panics as it frees it.
fn scalar_for(operation: &'static str, x: &DynTensor, number: f64) -> Result<Scalar> {
    if x.dtype() == DType::Bool {
        return Err(Error::DType { operation, expected: "numbers".to_owned(), got: DType::Bool });
    }
    if x.dtype().is_float() {
        return Ok(number.into());
    }
    if number.fract() != 0.0 || number.abs() > 2_f64.powi(53) {
        let problem = format!("{number} is not an integer, but the tensor is {}: cast it first", x.dtype());
        return Err(argument(operation, problem));
    }
    Ok((number as i64).into())
}

fn require_float(operation: &'static str, x: &DynTensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    Err(Error::DType { operation, expected: "a floating-point dtype".to_owned(), got: x.dtype() })
}

/// One element in the dtype and on the device of another tensor.
fn filled(like: &Tensor, value: Scalar) -> Computed {
    Tensor::f_full([0_i64; 0], value, (like.kind(), like.device()))
}

/// `x` where it is `inside`, `limit` where it is `outside`, and what is neither, a NaN, without its gradient.
fn limited(x: &Tensor, inside: &Tensor, outside: &Tensor, limit: &Tensor) -> Computed {
    x.f_where_self(inside, &limit.f_where_self(outside, &x.f_detach()?)?)
}

fn extents(shape: &Shape) -> Vec<i64> {
    shape.iter().map(|&extent| extent as i64).collect()
}

impl Ops for Torch {
    fn unary(op: UnaryOp, x: &DynTensor) -> Result<DynTensor> {
        match op {
            UnaryOp::Neg => computed("neg", [x], false, |[x]| x.f_neg()),
            UnaryOp::Abs => computed("abs", [x], false, |[x]| x.f_abs()),
            UnaryOp::Sign => computed("sign", [x], false, |[x]| x.f_sign()),
            UnaryOp::Exp => computed("exp", [x], false, |[x]| x.f_exp()),
            UnaryOp::Ln => computed("ln", [x], false, |[x]| x.f_log()),
            UnaryOp::Sqrt => computed("sqrt", [x], false, |[x]| x.f_sqrt()),
            UnaryOp::Rsqrt => computed("rsqrt", [x], false, |[x]| x.f_rsqrt()),
            UnaryOp::Recip => computed("recip", [x], false, |[x]| x.f_reciprocal()),
            UnaryOp::Sin => computed("sin", [x], false, |[x]| x.f_sin()),
            UnaryOp::Cos => computed("cos", [x], false, |[x]| x.f_cos()),
            UnaryOp::Erf => computed("erf", [x], false, |[x]| x.f_erf()),
            UnaryOp::Tanh => computed("tanh", [x], false, |[x]| x.f_tanh()),
            UnaryOp::Sigmoid => computed("sigmoid", [x], false, |[x]| x.f_sigmoid()),
            UnaryOp::Relu => computed("relu", [x], false, |[x]| x.f_relu()),
        }
    }

    fn binary(op: BinaryOp, lhs: &DynTensor, rhs: &DynTensor) -> Result<DynTensor> {
        match op {
            BinaryOp::Add => computed("add", [lhs, rhs], false, |[lhs, rhs]| lhs.f_add(rhs)),
            BinaryOp::Sub => computed("sub", [lhs, rhs], false, |[lhs, rhs]| lhs.f_sub(rhs)),
            BinaryOp::Mul => computed("mul", [lhs, rhs], false, |[lhs, rhs]| lhs.f_mul(rhs)),
            BinaryOp::Div => computed("div", [lhs, rhs], false, |[lhs, rhs]| lhs.f_div(rhs)),
            BinaryOp::Maximum => computed("maximum", [lhs, rhs], false, |[lhs, rhs]| lhs.f_maximum(rhs)),
            BinaryOp::Minimum => computed("minimum", [lhs, rhs], false, |[lhs, rhs]| lhs.f_minimum(rhs)),
        }
    }

    fn scalar(op: ScalarOp, x: &DynTensor, scalar: f64) -> Result<DynTensor> {
        match op {
            ScalarOp::Add => {
                let scalar = scalar_for("add_scalar", x, scalar)?;
                computed("add_scalar", [x], true, |[x]| x.f_add_scalar(scalar))
            }
            ScalarOp::Sub => {
                let scalar = scalar_for("sub_scalar", x, scalar)?;
                computed("sub_scalar", [x], true, |[x]| x.f_sub_scalar(scalar))
            }
            ScalarOp::Mul => {
                let scalar = scalar_for("mul_scalar", x, scalar)?;
                computed("mul_scalar", [x], false, |[x]| x.f_mul_scalar(scalar))
            }
            ScalarOp::Div => computed("div_scalar", [x], false, |[x]| x.f_div_scalar(scalar)),
            ScalarOp::Pow => computed("pow_scalar", [x], true, |[x]| x.f_pow_tensor_scalar(scalar)),
        }
    }

    /// By comparisons: the slope at a limit is 1, which that of libtorch's own `clamp` is not in every version.
    fn clamp(x: &DynTensor, min: Option<f64>, max: Option<f64>) -> Result<DynTensor> {
        let mut clamped = x.clone();
        if let Some(min) = min {
            let min = scalar_for("clamp", x, min)?;
            clamped = computed("clamp", [&clamped], true, |[x]| {
                let min = filled(x, min)?;
                limited(x, &x.f_ge_tensor(&min)?, &x.f_lt_tensor(&min)?, &min)
            })?;
        }
        if let Some(max) = max {
            let max = scalar_for("clamp", x, max)?;
            clamped = computed("clamp", [&clamped], true, |[x]| {
                let max = filled(x, max)?;
                limited(x, &x.f_le_tensor(&max)?, &x.f_gt_tensor(&max)?, &max)
            })?;
        }
        Ok(clamped)
    }

    fn compare(op: CmpOp, lhs: &DynTensor, rhs: &DynTensor) -> Result<DynTensor> {
        match op {
            CmpOp::Eq => computed("eq", [lhs, rhs], false, |[lhs, rhs]| lhs.f_eq_tensor(rhs)),
            CmpOp::Ne => computed("ne", [lhs, rhs], false, |[lhs, rhs]| lhs.f_ne_tensor(rhs)),
            CmpOp::Lt => computed("lt", [lhs, rhs], false, |[lhs, rhs]| lhs.f_lt_tensor(rhs)),
            CmpOp::Le => computed("le", [lhs, rhs], false, |[lhs, rhs]| lhs.f_le_tensor(rhs)),
            CmpOp::Gt => computed("gt", [lhs, rhs], false, |[lhs, rhs]| lhs.f_gt_tensor(rhs)),
            CmpOp::Ge => computed("ge", [lhs, rhs], false, |[lhs, rhs]| lhs.f_ge_tensor(rhs)),
        }
    }

    fn where_cond(mask: &DynTensor, on_true: &DynTensor, on_false: &DynTensor) -> Result<DynTensor> {
        let mask = mask.array();
        computed("where_cond", [on_true, on_false], false, |[on_true, on_false]| {
            on_true.f_where_self(mask, on_false)
        })
    }

    fn reduce(op: ReduceOp, x: &DynTensor, axes: Option<&[isize]>, keepdim: bool) -> Result<DynTensor> {
        // libtorch takes an empty list for all axes.
        let axes: Vec<i64> = axes.unwrap_or_default().iter().map(|&axis| axis as i64).collect();
        match op {
            ReduceOp::Sum => computed("sum", [x], false, |[x]| x.f_sum_dim_intlist(axes, keepdim, None)),
            ReduceOp::Mean => {
                require_float("mean", x)?;
                computed("mean", [x], false, |[x]| x.f_mean_dim(axes, keepdim, None))
            }
            ReduceOp::Max => computed("max", [x], false, |[x]| x.f_amax(axes, keepdim)),
            ReduceOp::Min => computed("min", [x], false, |[x]| x.f_amin(axes, keepdim)),
        }
    }

    fn softmax(x: &DynTensor, axis: isize) -> Result<DynTensor> {
        require_float("softmax", x)?;
        computed("softmax", [x], true, |[x]| x.f_softmax(axis as i64, None))
    }

    fn log_softmax(x: &DynTensor, axis: isize) -> Result<DynTensor> {
        require_float("log_softmax", x)?;
        computed("log_softmax", [x], true, |[x]| x.f_log_softmax(axis as i64, None))
    }

    fn matmul(lhs: &DynTensor, rhs: &DynTensor) -> Result<DynTensor> {
        computed("matmul", [lhs, rhs], false, |[lhs, rhs]| lhs.f_matmul(rhs))
    }

    fn transpose(x: &DynTensor, first: isize, second: isize) -> Result<DynTensor> {
        taken("transpose", x.array().f_transpose(first as i64, second as i64))
    }

    fn reshape(x: &DynTensor, shape: &Shape) -> Result<DynTensor> {
        taken("reshape", x.array().f_reshape(extents(shape)))
    }

    fn broadcast_to(x: &DynTensor, shape: &Shape) -> Result<DynTensor> {
        // Its gradient is a sum.
        computed("broadcast_to", [x], false, |[x]| x.f_broadcast_to(extents(shape)))
    }

    fn full_like(like: &DynTensor, value: f64, dtype: DType) -> Result<DynTensor> {
        let like = like.array();
        taken("full_like", Tensor::f_full(like.size(), value, (kind(dtype), like.device())))
    }
}
