//! The operations of [`Ops`] as methods: on dynamic tensors, where dtypes promote, and on values, where the type tells them.

use super::{BinaryOp, CmpOp, Ops, ReduceOp, ScalarOp, UnaryOp};
use crate::autograd::{DynTensor, autocast_dtype};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::typed::{Float, Value};

/// Both operands in the dtype that they promote to, whatever their shapes.
fn promoted<E: Ops>(lhs: &DynTensor<E>, rhs: &DynTensor<E>) -> Result<(DynTensor<E>, DynTensor<E>)> {
    let dtype = lhs.dtype().promote(rhs.dtype());
    Ok((lhs.cast(dtype)?, rhs.cast(dtype)?))
}

/// Reduced over axes that exist; over none of them each element is reduced alone.
fn reduced<E: Ops>(
    op: ReduceOp,
    x: &DynTensor<E>,
    axes: Option<&[isize]>,
    keepdim: bool,
) -> Result<DynTensor<E>> {
    for &axis in axes.unwrap_or_default() {
        x.shape().axis(op.name(), axis)?;
    }
    match (axes, op) {
        (Some([]), ReduceOp::Sum) if !x.dtype().is_float() => x.cast(DType::I64),
        (Some([]), ReduceOp::Mean) if !x.dtype().is_float() => {
            let expected = "a floating-point dtype".to_owned();
            Err(Error::DType { operation: "mean", expected, got: x.dtype() })
        }
        (Some([]), _) => Ok(x.clone()),
        _ => E::reduce(op, x, axes, keepdim),
    }
}

/// `call`, unless the tensor has this shape already.
fn reshaped<E: Ops>(
    x: &DynTensor<E>,
    shape: &Shape,
    call: fn(&DynTensor<E>, &Shape) -> Result<DynTensor<E>>,
) -> Result<DynTensor<E>> {
    if x.shape() == shape { Ok(x.clone()) } else { call(x, shape) }
}

/// `x`, if it has these axes.
fn with_axes<'a, E: Ops>(
    operation: &'static str,
    x: &'a DynTensor<E>,
    axes: &[isize],
) -> Result<&'a DynTensor<E>> {
    axes.iter().try_for_each(|&axis| x.shape().axis(operation, axis).map(|_| ()))?;
    Ok(x)
}

/// The result of an engine as a value. One of another dtype than the type says is found out here.
fn valued<D: Element, E: Ops>(tensor: DynTensor<E>) -> Result<Value<D, E>> {
    if tensor.dtype() == D::DTYPE { Ok(Value::wrap(tensor)) } else { Value::from_dyn(tensor) }
}

/// Writes the traits. An operation of two operands of one dtype is given as a function of them; of the others, `|x| …` is a call
/// for the dynamic tensor `x`. `[Float]` are those that values of other dtypes do not have.
macro_rules! methods {
    (
        {$($(#[$doc:meta])* $name:ident[$bound:ident]($($argument:ident: $type:ty),*) => |$x:ident| $call:expr;)*}
        binary: {$($(#[$binary_doc:meta])* $binary:ident[$binary_bound:ident] => $op:expr;)*}
        comparisons: {$($comparison:ident $kind:ident $sign:literal;)*}
    ) => {
        /// What can be computed with [`DynTensor`]s of an engine that offers [`Ops`]. Operands of two dtypes are promoted.
        pub trait DynTensorOps<E: Ops>: Sized {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// What the engine reports.
                fn $name(&self $(, $argument: $type)*) -> Result<Self>;
            )*
            $(
                $(#[$binary_doc])*
                ///
                /// # Errors
                /// What the engine reports, such as [`Error::Shape`].
                fn $binary(&self, rhs: &Self) -> Result<Self>;
            )*
            $(
                #[doc = concat!("`self ", $sign, " rhs`, element by element, as `bool`.")]
                ///
                /// # Errors
                /// What the engine reports, such as [`Error::Shape`].
                fn $comparison(&self, rhs: &Self) -> Result<Self>;
            )*

            /// The matrix product; inside [`autocast`](crate::autocast), of operands converted to its dtype.
            ///
            /// # Errors
            /// What the engine reports, such as [`Error::Shape`].
            fn matmul(&self, rhs: &Self) -> Result<Self>;

            /// Where this tensor of `bool` holds, elements of `on_true`, elsewhere of `on_false`.
            ///
            /// # Errors
            /// [`Error::DType`] if this is not of `bool`, and what the engine reports, such as [`Error::Shape`].
            fn where_cond(&self, on_true: &Self, on_false: &Self) -> Result<Self>;
        }

        impl<E: Ops> DynTensorOps<E> for DynTensor<E> {
            $(
                fn $name(&self $(, $argument: $type)*) -> Result<Self> {
                    let $x = self;
                    $call
                }
            )*
            $(
                fn $binary(&self, rhs: &Self) -> Result<Self> {
                    let (lhs, rhs) = promoted(self, rhs)?;
                    E::binary($op, &lhs, &rhs)
                }
            )*
            $(
                fn $comparison(&self, rhs: &Self) -> Result<Self> {
                    let (lhs, rhs) = promoted(self, rhs)?;
                    E::compare(CmpOp::$kind, &lhs, &rhs)
                }
            )*

            fn matmul(&self, rhs: &Self) -> Result<Self> {
                let (lhs, rhs) = match autocast_dtype() {
                    None => promoted(self, rhs)?,
                    Some(dtype) => promoted(&self.autocast_to(dtype)?, &rhs.autocast_to(dtype)?)?,
                };
                E::matmul(&lhs, &rhs)
            }

            fn where_cond(&self, on_true: &Self, on_false: &Self) -> Result<Self> {
                if self.dtype() != DType::Bool {
                    let expected = "a condition of bool".to_owned();
                    return Err(Error::DType { operation: "where_cond", expected, got: self.dtype() });
                }
                let (on_true, on_false) = promoted(on_true, on_false)?;
                E::where_cond(self, &on_true, &on_false)
            }
        }

        /// What can be computed with [`Value`]s of an engine that offers [`Ops`], inside `forward` and `backward`. Both operands have one dtype.
        pub trait ValueOps<D: Element, E: Ops>: Sized {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// What the engine reports.
                fn $name(&self $(, $argument: $type)*) -> Result<Self>
                where
                    D: $bound;
            )*
            $(
                $(#[$binary_doc])*
                ///
                /// # Errors
                /// What the engine reports, such as [`Error::Shape`].
                fn $binary(&self, rhs: &Self) -> Result<Self>
                where
                    D: $binary_bound;
            )*
            $(
                #[doc = concat!("`self ", $sign, " rhs`, element by element, as `bool`.")]
                ///
                /// # Errors
                /// What the engine reports, such as [`Error::Shape`].
                fn $comparison(&self, rhs: &Self) -> Result<Value<bool, E>>;
            )*

            /// The matrix product. The type says its dtype, so [`autocast`](crate::autocast) does not.
            ///
            /// # Errors
            /// What the engine reports, such as [`Error::Shape`].
            fn matmul(&self, rhs: &Self) -> Result<Self>;
        }

        impl<D: Element, E: Ops> ValueOps<D, E> for Value<D, E> {
            $(
                fn $name(&self $(, $argument: $type)*) -> Result<Self>
                where
                    D: $bound,
                {
                    let $x = self.as_dyn();
                    $call.and_then(valued)
                }
            )*
            $(
                fn $binary(&self, rhs: &Self) -> Result<Self>
                where
                    D: $binary_bound,
                {
                    E::binary($op, self.as_dyn(), rhs.as_dyn()).and_then(valued)
                }
            )*
            $(
                fn $comparison(&self, rhs: &Self) -> Result<Value<bool, E>> {
                    E::compare(CmpOp::$kind, self.as_dyn(), rhs.as_dyn()).and_then(valued)
                }
            )*

            fn matmul(&self, rhs: &Self) -> Result<Self> {
                E::matmul(self.as_dyn(), rhs.as_dyn()).and_then(valued)
            }
        }
    };
}

methods! {
    {
        /// `−self`, element by element.
        neg[Element]() => |x| E::unary(UnaryOp::Neg, x);
        /// The absolute value, element by element. Its slope at 0 is 0.
        abs[Element]() => |x| E::unary(UnaryOp::Abs, x);
        /// −1, 0 or 1, element by element. Its slope is 0.
        sign[Element]() => |x| E::unary(UnaryOp::Sign, x);
        /// `eˣ`, element by element.
        exp[Float]() => |x| E::unary(UnaryOp::Exp, x);
        /// The natural logarithm, element by element.
        ln[Float]() => |x| E::unary(UnaryOp::Ln, x);
        /// The square root, element by element.
        sqrt[Float]() => |x| E::unary(UnaryOp::Sqrt, x);
        /// One over the square root, element by element.
        rsqrt[Float]() => |x| E::unary(UnaryOp::Rsqrt, x);
        /// `1 / self`, element by element.
        recip[Float]() => |x| E::unary(UnaryOp::Recip, x);
        /// The sine, element by element.
        sin[Float]() => |x| E::unary(UnaryOp::Sin, x);
        /// The cosine, element by element.
        cos[Float]() => |x| E::unary(UnaryOp::Cos, x);
        /// The error function, element by element.
        erf[Float]() => |x| E::unary(UnaryOp::Erf, x);
        /// The hyperbolic tangent, element by element.
        tanh[Float]() => |x| E::unary(UnaryOp::Tanh, x);
        /// `1 / (1 + e⁻ˣ)`, element by element.
        sigmoid[Float]() => |x| E::unary(UnaryOp::Sigmoid, x);
        /// `x` where it is positive, else 0; a NaN stays. Its slope at 0 is 0.
        relu[Element]() => |x| E::unary(UnaryOp::Relu, x);

        /// `self + scalar`, element by element. The number adopts the tensor's dtype.
        add_scalar[Element](scalar: f64) => |x| E::scalar(ScalarOp::Add, x, scalar);
        /// `self − scalar`, element by element. The number adopts the tensor's dtype.
        sub_scalar[Element](scalar: f64) => |x| E::scalar(ScalarOp::Sub, x, scalar);
        /// `self · scalar`, element by element. The number adopts the tensor's dtype.
        mul_scalar[Element](scalar: f64) => |x| E::scalar(ScalarOp::Mul, x, scalar);
        /// `self / scalar`, element by element. The number adopts the tensor's dtype.
        div_scalar[Float](scalar: f64) => |x| E::scalar(ScalarOp::Div, x, scalar);
        /// `self` to a power, element by element.
        pow_scalar[Float](exponent: f64) => |x| E::scalar(ScalarOp::Pow, x, exponent);
        /// Each element, or the limit that it exceeds; a limit may be `None`.
        clamp[Element](min: impl Into<Option<f64>>, max: impl Into<Option<f64>>) => |x| E::clamp(x, min.into(), max.into());

        /// The sum of all elements, of shape `[]`.
        sum[Float]() => |x| reduced(ReduceOp::Sum, x, None, false);
        /// The sums along `axes`, which stay with extent 1 if `keepdim`.
        sum_axes[Float](axes: &[isize], keepdim: bool) => |x| reduced(ReduceOp::Sum, x, Some(axes), keepdim);
        /// The mean of all elements, of shape `[]`.
        mean[Float]() => |x| reduced(ReduceOp::Mean, x, None, false);
        /// The means along `axes`, which stay with extent 1 if `keepdim`.
        mean_axes[Float](axes: &[isize], keepdim: bool) => |x| reduced(ReduceOp::Mean, x, Some(axes), keepdim);
        /// The largest of all elements, of shape `[]`. Equals share the gradient.
        max[Element]() => |x| reduced(ReduceOp::Max, x, None, false);
        /// The largest elements over `axes`, which stay with extent 1 if `keepdim`. Equals share the gradient.
        max_axes[Element](axes: &[isize], keepdim: bool) => |x| reduced(ReduceOp::Max, x, Some(axes), keepdim);
        /// The smallest of all elements, of shape `[]`. Equals share the gradient.
        min[Element]() => |x| reduced(ReduceOp::Min, x, None, false);
        /// The smallest elements over `axes`, which stay with extent 1 if `keepdim`. Equals share the gradient.
        min_axes[Element](axes: &[isize], keepdim: bool) => |x| reduced(ReduceOp::Min, x, Some(axes), keepdim);

        /// `exp(x) / Σ exp(x)` along `axis`.
        softmax[Float](axis: isize) => |x| with_axes("softmax", x, &[axis]).and_then(|x| E::softmax(x, axis));
        /// `x − ln Σ exp(x)` along `axis`.
        log_softmax[Float](axis: isize) => |x| with_axes("log_softmax", x, &[axis]).and_then(|x| E::log_softmax(x, axis));

        /// Two axes swapped, counted from the end if negative.
        transpose[Element](first: isize, second: isize) => |x| {
            with_axes("transpose", x, &[first, second]).and_then(|x| E::transpose(x, first, second))
        };
        /// The same elements in the same order under another shape.
        reshape[Element](shape: impl Into<Shape>) => |x| reshaped(x, &shape.into(), E::reshape);
        /// The values repeated along axes of extent 1 and new leading axes.
        broadcast_to[Element](shape: impl Into<Shape>) => |x| reshaped(x, &shape.into(), E::broadcast_to);
        /// The sum over the axes that broadcasting `shape` to this tensor's shape would repeat or add.
        sum_to_shape[Float](shape: &Shape) => |x| reshaped(x, shape, E::sum_to_shape);

        /// As many elements, of the same dtype and in the same place, all of one value.
        full_like[Element](value: f64) => |x| E::full_like(x, value, x.dtype());
        /// As many zeros, of the same dtype and in the same place.
        zeros_like[Element]() => |x| E::full_like(x, 0.0, x.dtype());
        /// As many ones, of the same dtype and in the same place.
        ones_like[Element]() => |x| E::full_like(x, 1.0, x.dtype());
    }
    binary: {
        /// `self + rhs`, element by element; both broadcast by NumPy's rules.
        add[Element] => BinaryOp::Add;
        /// `self − rhs`, element by element; both broadcast by NumPy's rules.
        sub[Element] => BinaryOp::Sub;
        /// `self · rhs`, element by element; both broadcast by NumPy's rules.
        mul[Element] => BinaryOp::Mul;
        /// `self / rhs`, element by element; both broadcast by NumPy's rules.
        div[Float] => BinaryOp::Div;
        /// The larger of both, element by element; a NaN wins, equals share the gradient.
        maximum[Element] => BinaryOp::Maximum;
        /// The smaller of both, element by element; a NaN wins, equals share the gradient.
        minimum[Element] => BinaryOp::Minimum;
    }
    comparisons: {
        eq Eq "="; ne Ne "≠"; lt Lt "<"; le Le "≤"; gt Gt ">"; ge Ge "≥";
    }
}

/// What chooses between [`Value`]s by a mask, which comparisons make.
pub trait MaskOps<E: Ops> {
    /// Where this holds, elements of `on_true`, elsewhere of `on_false`; all three broadcast by NumPy's rules.
    ///
    /// # Errors
    /// What the engine reports, such as [`Error::Shape`].
    fn where_cond<D: Element>(&self, on_true: &Value<D, E>, on_false: &Value<D, E>) -> Result<Value<D, E>>;
}

impl<E: Ops> MaskOps<E> for Value<bool, E> {
    fn where_cond<D: Element>(&self, on_true: &Value<D, E>, on_false: &Value<D, E>) -> Result<Value<D, E>> {
        E::where_cond(self.as_dyn(), on_true.as_dyn(), on_false.as_dyn()).and_then(valued)
    }
}
