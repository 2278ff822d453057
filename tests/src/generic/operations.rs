//! Each operation of [`gradpact::ops`] alone, on dynamic tensors and inside a Function.

use core::fmt;
use core::marker::PhantomData;

use gradpact::Ops;
use gradpact::ops::{DynTensorOps as _, MaskOps as _, ValueOps as _};
use gradpact::prelude::*;

use super::{Access, Outcome, leaf, outcome};

/// Gives the list of operations to a macro, so that it can be compiled for the methods of whatever engine: `name: |x, y| …;` for
/// tensors `x` and `y` of shape `[2, 3]`.
#[macro_export]
macro_rules! for_each_operation {
    ($callback:ident) => {
        $callback! {
            neg: |x, y| x.neg();
            abs: |x, y| x.abs();
            sign: |x, y| x.sign();
            exp: |x, y| x.exp();
            ln: |x, y| x.abs()?.add_scalar(0.5)?.ln();
            sqrt: |x, y| x.abs()?.add_scalar(0.5)?.sqrt();
            rsqrt: |x, y| x.abs()?.add_scalar(0.5)?.rsqrt();
            recip: |x, y| x.add_scalar(2.0)?.recip();
            sin: |x, y| x.sin();
            cos: |x, y| x.cos();
            erf: |x, y| x.erf();
            tanh: |x, y| x.tanh();
            sigmoid: |x, y| x.sigmoid();
            relu: |x, y| x.relu();
            add: |x, y| x.add(y);
            sub: |x, y| x.sub(y);
            mul: |x, y| x.mul(y);
            div: |x, y| x.div(y);
            maximum: |x, y| x.maximum(y);
            minimum: |x, y| x.minimum(y);
            add_of_a_row: |x, y| x.add(&y.sum_axes(&[0], false)?);
            sub_of_a_row: |x, y| y.sum_axes(&[0], false)?.sub(x);
            mul_of_a_column: |x, y| x.mul(&y.mean_axes(&[1], true)?);
            div_of_a_scalar: |x, y| x.div(&y.sum()?);
            maximum_of_a_row: |x, y| x.maximum(&y.sum_axes(&[0], true)?);
            minimum_of_a_column: |x, y| x.minimum(&y.mean_axes(&[-1], true)?);
            add_scalar: |x, y| x.add_scalar(0.7);
            sub_scalar: |x, y| x.sub_scalar(0.7);
            mul_scalar: |x, y| x.mul_scalar(0.7);
            div_scalar: |x, y| x.div_scalar(0.7);
            pow_scalar: |x, y| x.pow_scalar(3.0);
            root_by_pow_scalar: |x, y| x.abs()?.add_scalar(0.5)?.pow_scalar(0.5);
            clamp: |x, y| x.clamp(-0.75, 1.0);
            clamp_from_below: |x, y| x.clamp(0.25, None);
            clamp_from_above: |x, y| x.clamp(None, 0.25);
            eq: |x, y| x.eq(y)?.where_cond(x, y);
            ne: |x, y| x.ne(y)?.where_cond(x, y);
            lt: |x, y| x.lt(y)?.where_cond(x, y);
            le: |x, y| x.le(y)?.where_cond(x, y);
            gt: |x, y| x.gt(y)?.where_cond(x, y);
            ge: |x, y| x.ge(y)?.where_cond(x, y);
            where_of_a_row: |x, y| x.gt(y)?.where_cond(x, &y.sum_axes(&[0], false)?);
            sum: |x, y| x.mul(y)?.sum();
            sum_of_rows: |x, y| x.sum_axes(&[0], false);
            sum_of_columns_kept: |x, y| x.sum_axes(&[-1], true);
            sum_over_no_axis: |x, y| x.sum_axes(&[], true);
            mean: |x, y| x.mul(y)?.mean();
            mean_of_rows: |x, y| x.mean_axes(&[0], true);
            mean_over_both_axes: |x, y| x.mean_axes(&[1, 0], false);
            mean_over_no_axis: |x, y| x.mean_axes(&[], false);
            max: |x, y| x.max();
            max_of_rows: |x, y| x.max_axes(&[0], false);
            max_of_equals: |x, y| x.relu()?.clamp(None, 0.5)?.max_axes(&[-1], true);
            min: |x, y| x.min();
            min_of_columns: |x, y| x.min_axes(&[1], false);
            min_over_no_axis: |x, y| x.min_axes(&[], false);
            softmax: |x, y| x.softmax(-1);
            softmax_of_columns: |x, y| x.softmax(0);
            log_softmax: |x, y| x.log_softmax(1);
            matmul: |x, y| x.matmul(&y.transpose(0, 1)?);
            matmul_of_a_vector: |x, y| x.matmul(&y.sum_axes(&[0], false)?);
            matmul_of_a_batch: |x, y| x.reshape([2, 1, 3])?.matmul(&y.reshape([3, 2])?);
            transpose: |x, y| x.transpose(0, -1);
            reshape: |x, y| x.reshape([3, 2]);
            reshape_to_the_same: |x, y| x.reshape([2, 3]);
            broadcast_to: |x, y| x.broadcast_to([2, 2, 3]);
            broadcast_of_a_column: |x, y| x.sum_axes(&[1], true)?.broadcast_to([2, 4]);
            sum_to_shape: |x, y| x.sum_to_shape(&[1, 3].into());
            sum_to_a_row: |x, y| x.broadcast_to([2, 2, 3])?.sum_to_shape(&[3].into());
            sum_to_a_scalar: |x, y| x.sum_to_shape(&[].into());
        }
    };
}

/// Computes one tensor from two.
pub type Dynamic<E> = fn(&DynTensor<E>, &DynTensor<E>) -> Result<DynTensor<E>>;

/// Computes one value from two.
pub type Typed<E> = fn(&Value<f32, E>, &Value<f32, E>) -> Result<Value<f32, E>>;

/// One of the list.
#[derive(Clone, Copy)]
pub struct Operation<E: Ops> {
    /// What it is called in the list.
    pub name: &'static str,
    /// With methods of dynamic tensors.
    pub dynamic: Dynamic<E>,
    /// With methods of values.
    pub typed: Typed<E>,
}

impl<E: Ops> fmt::Debug for Operation<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! generic {
    ($($name:ident: |$x:ident, $y:ident| $operation:expr;)*) => {
        /// The operations, by the traits of [`gradpact::ops`].
        #[allow(unused_variables, reason = "not every operation has two operands")]
        pub fn operations<E: Ops>() -> Vec<Operation<E>> {
            vec![$(Operation {
                name: stringify!($name),
                dynamic: |$x, $y| $operation,
                typed: |$x, $y| $operation,
            }),*]
        }
    };
}
for_each_operation!(generic);

/// Values that every floating dtype holds; there are a zero and a tie among them.
const X: [f64; 6] = [0.5, -1.5, 0.75, 1.25, -0.5, 0.0];
const Y: [f64; 6] = [1.0, 0.5, -1.25, 1.25, 1.5, -0.5];

/// Runs an operation on leaves stored in `A` and `B`, recorded by the engine itself.
///
/// # Errors
/// What the engine reports.
pub fn alone<A: Float, B: Float, E: Ops>(access: &Access<E>, operation: Dynamic<E>) -> Result<Outcome> {
    let (x, y) = (leaf::<A, A, E>(access, &[2, 3], &X)?, leaf::<B, B, E>(access, &[2, 3], &Y)?);
    let output = operation(x.as_dyn(), y.as_dyn())?;
    outcome(access, &output, output.dtype(), || {
        vec![x.grad().map(Tensor::into_dyn), y.grad().map(Tensor::into_dyn)]
    })
}

/// Runs an operation in the forward and in the backward of a Function, stored in `D` with gradients in `G`.
///
/// # Errors
/// What the engine reports.
pub fn inside<D: Float, G: Float, E: Ops>(access: &Access<E>, operation: Typed<E>) -> Result<Outcome> {
    let (x, y) = (leaf::<f32, f32, E>(access, &[2, 3], &X)?, leaf::<f32, f32, E>(access, &[2, 3], &Y)?);
    let output: Tensor<D, G, E> = Inside { operation, dtypes: PhantomData }.apply((&x, &y))?;
    outcome(access, output.as_dyn(), DType::F32, || {
        vec![x.grad().map(Tensor::into_dyn), y.grad().map(Tensor::into_dyn)]
    })
}

/// An operation stored in `D`. Its backward is no derivative: it sends `Σ G · f(x, y)` to `x` and `Σ G · f(y, x)` to `y`, and so
/// shows the operation at work on both ways.
#[autograd_function(out = D, grad = G)]
struct Inside<D: Float, G: Float, E: Ops> {
    operation: Typed<E>,
    dtypes: PhantomData<(D, G)>,
}

impl<D: Float, G: Float, E: Ops> Op<E> for Inside<D, G, E> {
    type Inputs = (Tensor<f32, f32, E>, Tensor<f32, f32, E>);

    fn forward(&self, ctx: &mut Context<E>, (x, y): (Value<f32, E>, Value<f32, E>)) -> Result<Value<D, E>> {
        ctx.save_for_backward((&x, &y));
        (self.operation)(&x, &y)?.cast()
    }

    fn backward(&self, ctx: &Context<E>, grad: Value<G, E>) -> Result<(Value<f32, E>, Value<f32, E>)> {
        let (x, y): (Value<f32, E>, Value<f32, E>) = ctx.saved()?;
        let grad: Value<f32, E> = grad.cast()?;
        let sent = |value: Value<f32, E>| grad.mul(&value)?.sum()?.broadcast_to([2, 3]);
        Ok((sent((self.operation)(&x, &y)?)?, sent((self.operation)(&y, &x)?)?))
    }
}
