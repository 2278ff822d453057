//! The operations that Functions generic over the engine use, as the embedded engine has them.

use super::matmul::multiply;
use crate::autograd::DynTensor;
use crate::engine::Cpu;
use crate::error::Result;
use crate::ops::{BinaryOp, CmpOp, Ops, ReduceOp, ScalarOp, UnaryOp};
use crate::shape::Shape;

impl Ops for Cpu {
    fn unary(op: UnaryOp, x: &DynTensor) -> Result<DynTensor> {
        match op {
            UnaryOp::Neg => x.neg(),
            UnaryOp::Abs => x.abs(),
            UnaryOp::Sign => x.sign(),
            UnaryOp::Exp => x.exp(),
            UnaryOp::Ln => x.ln(),
            UnaryOp::Sqrt => x.sqrt(),
            UnaryOp::Rsqrt => x.rsqrt(),
            UnaryOp::Recip => x.recip(),
            UnaryOp::Sin => x.sin(),
            UnaryOp::Cos => x.cos(),
            UnaryOp::Erf => x.erf(),
            UnaryOp::Tanh => x.tanh(),
            UnaryOp::Sigmoid => x.sigmoid(),
            UnaryOp::Relu => x.relu(),
        }
    }

    fn binary(op: BinaryOp, lhs: &DynTensor, rhs: &DynTensor) -> Result<DynTensor> {
        match op {
            BinaryOp::Add => lhs.add(rhs),
            BinaryOp::Sub => lhs.sub(rhs),
            BinaryOp::Mul => lhs.mul(rhs),
            BinaryOp::Div => lhs.div(rhs),
            BinaryOp::Maximum => lhs.maximum(rhs),
            BinaryOp::Minimum => lhs.minimum(rhs),
        }
    }

    fn scalar(op: ScalarOp, x: &DynTensor, scalar: f64) -> Result<DynTensor> {
        match op {
            ScalarOp::Add => x.add_scalar(scalar),
            ScalarOp::Sub => x.sub_scalar(scalar),
            ScalarOp::Mul => x.mul_scalar(scalar),
            ScalarOp::Div => x.div_scalar(scalar),
            ScalarOp::Pow => x.pow_scalar(scalar),
        }
    }

    fn clamp(x: &DynTensor, min: Option<f64>, max: Option<f64>) -> Result<DynTensor> {
        x.clamp(min, max)
    }

    fn compare(op: CmpOp, lhs: &DynTensor, rhs: &DynTensor) -> Result<DynTensor> {
        match op {
            CmpOp::Eq => lhs.eq(rhs),
            CmpOp::Ne => lhs.ne(rhs),
            CmpOp::Lt => lhs.lt(rhs),
            CmpOp::Le => lhs.le(rhs),
            CmpOp::Gt => lhs.gt(rhs),
            CmpOp::Ge => lhs.ge(rhs),
        }
    }

    fn where_cond(mask: &DynTensor, on_true: &DynTensor, on_false: &DynTensor) -> Result<DynTensor> {
        mask.where_cond(on_true, on_false)
    }

    fn reduce(op: ReduceOp, x: &DynTensor, axes: Option<&[isize]>, keepdim: bool) -> Result<DynTensor> {
        match (op, axes) {
            (ReduceOp::Sum, None) => x.sum(),
            (ReduceOp::Sum, Some(axes)) => x.sum_axes(axes, keepdim),
            (ReduceOp::Mean, None) => x.mean(),
            (ReduceOp::Mean, Some(axes)) => x.mean_axes(axes, keepdim),
            (ReduceOp::Max, None) => x.max(),
            (ReduceOp::Max, Some(axes)) => x.max_axes(axes, keepdim),
            (ReduceOp::Min, None) => x.min(),
            (ReduceOp::Min, Some(axes)) => x.min_axes(axes, keepdim),
        }
    }

    fn softmax(x: &DynTensor, axis: isize) -> Result<DynTensor> {
        x.softmax(axis)
    }

    fn log_softmax(x: &DynTensor, axis: isize) -> Result<DynTensor> {
        x.log_softmax(axis)
    }

    fn matmul(lhs: &DynTensor, rhs: &DynTensor) -> Result<DynTensor> {
        // The caller has seen to `autocast`, if it is a matter of that.
        multiply(lhs, rhs)
    }

    fn transpose(x: &DynTensor, first: isize, second: isize) -> Result<DynTensor> {
        x.transpose(first, second)
    }

    fn reshape(x: &DynTensor, shape: &Shape) -> Result<DynTensor> {
        x.reshape(shape.clone())
    }

    fn broadcast_to(x: &DynTensor, shape: &Shape) -> Result<DynTensor> {
        x.broadcast_to(shape.clone())
    }

    fn sum_to_shape(x: &DynTensor, shape: &Shape) -> Result<DynTensor> {
        x.sum_to_shape(shape)
    }
}
