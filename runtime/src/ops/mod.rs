//! Operations that several engines offer under the same names: what a Function generic over the engine is written with.
//!
//! An engine implements [`Ops`]. Its values then have the methods of [`ValueOps`], [`MaskOps`] and [`DynTensorOps`], which are
//! named as those of the embedded engine and mean the same. The prelude does not have them: a host's tensors show the methods
//! of the host, and these traits are only there for whoever imports them.
//!
//! On full [`Tensor`](crate::Tensor)s there are none. Their types would promise a gradient dtype for the result, which a host's own
//! operations do not keep: libtorch rounds a gradient to the storage dtype of the tensor that it passes. A Function keeps the
//! promise on every engine; so does [`Tensor::cast`](crate::Tensor::cast). Around it, [`value`](crate::Tensor::value) and
//! [`as_dyn`](crate::Tensor::as_dyn) give what has the methods.
//!
//! # Examples
//! ```
//! use gradpact::ops::*;
//! use gradpact::prelude::*;
//!
//! /// x·σ(x), stored in half precision; its backward receives single precision, on whatever engine.
//! #[autograd_function(out = f16, grad = f32)]
//! struct Silu;
//!
//! impl<E: Ops> Op<E> for Silu {
//!     type Inputs = Tensor<f32, f32, E>;
//!
//!     fn forward(&self, ctx: &mut Context<E>, x: Value<f32, E>) -> Result<Value<f16, E>> {
//!         ctx.save_for_backward(&x);
//!         x.mul(&x.sigmoid()?)?.cast()
//!     }
//!
//!     // grad · σ(x) · (1 + x·(1 − σ(x)))
//!     fn backward(&self, ctx: &Context<E>, grad: Value<f32, E>) -> Result<Value<f32, E>> {
//!         let x: Value<f32, E> = ctx.saved()?;
//!         let s = x.sigmoid()?;
//!         let slope = x.mul(&s.neg()?.add_scalar(1.0)?)?.add_scalar(1.0)?.mul(&s)?;
//!         grad.mul(&slope)
//!     }
//! }
//!
//! let x = Tensor::<f32>::from_vec(vec![-1.0, 0.0, 2.0], [3])?.requiring_grad()?;
//! let y: Tensor<f16, f32> = Silu.apply(&x)?; // on the embedded engine, since that is where `x` is
//! y.cast::<f32>()?.sum()?.backward()?;
//! assert_eq!(x.grad().unwrap().to_vec()?[1], 0.5);
//! # Ok::<(), Error>(())
//! ```

mod methods;

pub use methods::{DynTensorOps, MaskOps, ValueOps};

use crate::autograd::DynTensor;
use crate::dtype::DType;
use crate::engine::Array;
use crate::error::{Error, Result};
use crate::function::Graph;
use crate::shape::Shape;

/// An engine that offers the operations of this module, so that Functions can be generic over it: `impl<E: Ops> Op<E> for …`.
///
/// What its implementor may rely on: the two operands of one call have the same dtype, axes exist, and a list of axes is not
/// empty. What is asked of it: names mean what PyTorch means by them; operands broadcast by NumPy's rules; the result has
/// the dtype of the operands, unless it says otherwise here; 8- and 16-bit floats are computed in `f32` and rounded once; and what
/// it cannot do is an error. On tracked tensors an operation is recorded in the engine's graph.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not offer the operations of `gradpact::ops`",
    label = "not an engine that generic Functions can compute on",
    note = "a Function that is generic over the engine asks for `E: Ops`"
)]
pub trait Ops: Graph {
    /// An operation on one tensor, element by element. Of integers, what is no integer is `f32`.
    ///
    /// # Errors
    /// What the engine reports.
    fn unary(op: UnaryOp, x: &DynTensor<Self>) -> Result<DynTensor<Self>>;

    /// An operation on two tensors, element by element. A quotient of integers is `f32`.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Shape`].
    fn binary(op: BinaryOp, lhs: &DynTensor<Self>, rhs: &DynTensor<Self>) -> Result<DynTensor<Self>>;

    /// An operation on a tensor and a number, which adopts the tensor's dtype. A quotient of integers is `f32`.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Argument`] of a fraction that meets integers.
    fn scalar(op: ScalarOp, x: &DynTensor<Self>, scalar: f64) -> Result<DynTensor<Self>>;

    /// Each element, or the limit that it exceeds.
    ///
    /// # Errors
    /// What the engine reports.
    fn clamp(x: &DynTensor<Self>, min: Option<f64>, max: Option<f64>) -> Result<DynTensor<Self>>;

    /// A comparison, element by element, as `bool`. It has no gradient.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Shape`].
    fn compare(op: CmpOp, lhs: &DynTensor<Self>, rhs: &DynTensor<Self>) -> Result<DynTensor<Self>>;

    /// Where `mask` (of `bool`) holds, elements of `on_true`, elsewhere of `on_false`.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Shape`].
    fn where_cond(
        mask: &DynTensor<Self>,
        on_true: &DynTensor<Self>,
        on_false: &DynTensor<Self>,
    ) -> Result<DynTensor<Self>>;

    /// Elements reduced to one: over `axes`, which stay with extent 1 if `keepdim`, or all, to shape `[]`.
    ///
    /// A sum of integers is `i64`. Equal extrema share the gradient.
    ///
    /// # Errors
    /// What the engine reports, such as of an axis that is given twice, or of a mean of integers.
    fn reduce(
        op: ReduceOp,
        x: &DynTensor<Self>,
        axes: Option<&[isize]>,
        keepdim: bool,
    ) -> Result<DynTensor<Self>>;

    /// `exp(x) / Σ exp(x)` along `axis`.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::DType`] of integers.
    fn softmax(x: &DynTensor<Self>, axis: isize) -> Result<DynTensor<Self>>;

    /// `x − ln Σ exp(x)` along `axis`.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::DType`] of integers.
    fn log_softmax(x: &DynTensor<Self>, axis: isize) -> Result<DynTensor<Self>>;

    /// The matrix product: `[…, m, k]` and `[…, k, n]` give `[…, m, n]`. A vector is a row on the left and a column on the right.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Shape`].
    fn matmul(lhs: &DynTensor<Self>, rhs: &DynTensor<Self>) -> Result<DynTensor<Self>>;

    /// Two axes swapped, counted from the end if negative.
    ///
    /// # Errors
    /// What the engine reports.
    fn transpose(x: &DynTensor<Self>, first: isize, second: isize) -> Result<DynTensor<Self>>;

    /// The same elements in the same order under another shape.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Shape`].
    fn reshape(x: &DynTensor<Self>, shape: &Shape) -> Result<DynTensor<Self>>;

    /// The values repeated along axes of extent 1 and new leading axes.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Shape`].
    fn broadcast_to(x: &DynTensor<Self>, shape: &Shape) -> Result<DynTensor<Self>>;

    /// The sum over the axes that broadcasting `shape` to this shape would repeat or add. By default a sum and a `reshape`.
    ///
    /// # Errors
    /// What the engine reports, and [`Error::Shape`].
    fn sum_to_shape(x: &DynTensor<Self>, shape: &Shape) -> Result<DynTensor<Self>> {
        let from = x.shape();
        if !shape.broadcasts_to(from) {
            let problem = format!("shape {shape} does not broadcast to {from}");
            return Err(Error::Shape { operation: "sum_to_shape", problem });
        }
        let added = from.len() - shape.len();
        let repeated = |&axis: &usize| axis < added || (shape[axis - added] == 1 && from[axis] != 1);
        let axes: Vec<isize> = (0..from.len()).filter(repeated).map(|axis| axis as isize).collect();
        let sum =
            if axes.is_empty() { x.clone() } else { Self::reduce(ReduceOp::Sum, x, Some(&axes), true)? };
        Self::reshape(&sum, shape)
    }

    /// A tensor of this shape filled with one value, where `like` is (on the same device). By default
    /// [`Array::full`].
    ///
    /// # Errors
    /// What the engine reports.
    fn full_like(like: &DynTensor<Self>, value: f64, dtype: DType) -> Result<DynTensor<Self>> {
        Self::Array::full(like.shape(), value, dtype).map(DynTensor::from_array)
    }
}

/// Operations on one tensor, element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `−x`.
    Neg,
    /// `|x|`; its slope at 0 is 0.
    Abs,
    /// −1, 0 or 1; its slope is 0.
    Sign,
    /// `eˣ`.
    Exp,
    /// The natural logarithm.
    Ln,
    /// `√x`.
    Sqrt,
    /// `1 / √x`.
    Rsqrt,
    /// `1 / x`.
    Recip,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The error function.
    Erf,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e⁻ˣ)`.
    Sigmoid,
    /// `x` where it is positive, else 0; a NaN stays. Its slope at 0 is 0.
    Relu,
}

/// Operations on two tensors, element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `a + b`.
    Add,
    /// `a − b`.
    Sub,
    /// `a · b`.
    Mul,
    /// `a / b`.
    Div,
    /// The larger; a NaN wins, equals share the gradient.
    Maximum,
    /// The smaller; a NaN wins, equals share the gradient.
    Minimum,
}

/// Operations on a tensor and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarOp {
    /// `x + s`.
    Add,
    /// `x − s`.
    Sub,
    /// `x · s`.
    Mul,
    /// `x / s`.
    Div,
    /// `xˢ`.
    Pow,
}

/// Comparisons; with a NaN only [`Ne`](Self::Ne) holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmpOp {
    /// `a = b`.
    Eq,
    /// `a ≠ b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a ≤ b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a ≥ b`.
    Ge,
}

impl CmpOp {
    /// The name that errors give.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
        }
    }
}

/// What many elements are reduced to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest; a NaN wins. `amax` in PyTorch.
    Max,
    /// The smallest; a NaN wins. `amin` in PyTorch.
    Min,
}

impl ReduceOp {
    /// The name that errors give.
    fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Min => "min",
        }
    }
}
