//! Operations with gradients on the CPU engine: a file for each family. Each operation is a Function like the user's.
//!
//! An operation has a method on [`DynTensor`], where the arithmetic promotes dtypes, and a twin on [`Tensor`](crate::Tensor), which asks
//! for equal storage dtypes and tells the gradient dtype of the result in its type.

mod activation;
mod arithmetic;
mod broadcast;
mod compare;
mod elementary;
mod extremum;
mod generic;
mod index;
mod join;
mod loss;
mod matmul;
mod norm;
mod reduce;
mod scalar;
mod shape;
mod softmax;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod typed_tests;

use crate::autograd::{Cut, DynTensor, Origin, Outputs, grad_mode};
use crate::cpu::Array;
use crate::engine::Cpu;
use crate::error::{Error, Place, Result};
use crate::function::{Context, Function, apply};
use crate::shape::Shape;

/// Applies an operation that has one output.
pub(crate) fn apply_one<F: Function<Cpu>>(function: F, inputs: &[&DynTensor<Cpu>]) -> Result<DynTensor<Cpu>> {
    let name = function.name();
    only_output(name, apply(function, inputs)?)
}

/// The output of an operation that has one.
fn only_output(function: &str, mut outputs: Outputs<Cpu>) -> Result<DynTensor<Cpu>> {
    let none = || Error::ValueCount { function: function.to_owned(), what: "outputs", expected: 1, got: 0 };
    outputs.pop().ok_or_else(none)
}

/// The gradient of the only output; zeros have taken the place of one that never came.
pub(crate) fn only(ctx: &Context<Cpu>, grads: crate::Gradients<Cpu>) -> Result<DynTensor<Cpu>> {
    let absent = || Error::AbsentGradient(Box::new(Place::output(ctx.function(), 0)));
    grads.into_iter().next().flatten().ok_or_else(absent)
}

/// The shapes of two operands, where they differ: what a gradient has to be summed to.
pub(crate) type Broadcast = Option<Box<(Shape, Shape)>>;

/// What [`Broadcast`] is for these operands.
pub(crate) fn broadcast_of(lhs: &DynTensor<Cpu>, rhs: &DynTensor<Cpu>) -> Broadcast {
    (lhs.shape() != rhs.shape()).then(|| Box::new((lhs.shape().clone(), rhs.shape().clone())))
}

/// The type of a unary operation's result: stored in `D`, gradient as wide as `G` and `D`.
pub type Unary<D, G> = crate::Tensor<D, <G as crate::typed::Over<D>>::Output>;

/// The type of a binary operation's result: stored in `D`, gradient as wide as `G`, `H` and `D`.
pub type Binary<D, G, H> = Unary<D, <G as crate::typed::Join<H>>::Output>;

/// Both tensors in the dtype that a backward computes in: promoted, and at least `f32`.
///
/// A formula of several operations is so evaluated without rounding to 8 or 16 bits in between; the edge that the result
/// leaves on rounds it, once, to what is declared there.
pub(crate) fn widened(
    grad: &DynTensor<Cpu>,
    saved: &DynTensor<Cpu>,
) -> Result<(DynTensor<Cpu>, DynTensor<Cpu>)> {
    let dtype = grad.dtype().promote(saved.dtype()).accumulation();
    Ok((grad.cast(dtype)?, saved.cast(dtype)?))
}

/// `array` as the result of an operation without a gradient: the graph ends here, and errors can say so.
pub(crate) fn without_gradient(
    operation: &'static str,
    array: Array,
    inputs: &[&DynTensor<Cpu>],
) -> DynTensor<Cpu> {
    let origin = if grad_mode::is_enabled() && inputs.iter().any(|input| input.requires_grad()) {
        Origin::Cut(Cut::at_output(operation, 0))
    } else {
        Origin::of_unrecorded(inputs.iter().copied())
    };
    DynTensor::with_origin(array, origin)
}

/// Implements [`Function`] for an operation with one input and one output.
///
/// What backward is given beside the gradient is said by `saves`: the `input`, the `output` or `nothing`. Both come
/// [`widened`].
macro_rules! unary_function {
    ($type:ident saves nothing, |$this:ident, $x:ident| $forward:expr, |$that:ident, $grad:ident| $backward:expr) => {
        $crate::cpu::ops::unary_function! {
            @ $type,
            |$this, ctx, input: &$crate::DynTensor<$crate::Cpu>| {
                let $x = input.array();
                Ok($crate::DynTensor::from_array($forward?))
            },
            |$that, ctx, $grad| $backward
        }
    };
    ($type:ident saves input, |$this:ident, $x:ident| $forward:expr, |$that:ident, $grad:ident, $saved:ident| $backward:expr) => {
        $crate::cpu::ops::unary_function! {
            @ $type,
            |$this, ctx, input: &$crate::DynTensor<$crate::Cpu>| {
                ctx.save_for_backward(input);
                let $x = input.array();
                Ok($crate::DynTensor::from_array($forward?))
            },
            |$that, ctx, grad| {
                let ($grad, $saved) = $crate::cpu::ops::widened(&grad, ctx.saved_tensor(0)?)?;
                $backward
            }
        }
    };
    ($type:ident saves output, |$this:ident, $x:ident| $forward:expr, |$that:ident, $grad:ident, $saved:ident| $backward:expr) => {
        $crate::cpu::ops::unary_function! {
            @ $type,
            |$this, ctx, input: &$crate::DynTensor<$crate::Cpu>| {
                let $x = input.array();
                let output = $crate::DynTensor::from_array($forward?);
                ctx.save_for_backward(&output);
                Ok(output)
            },
            |$that, ctx, grad| {
                let ($grad, $saved) = $crate::cpu::ops::widened(&grad, ctx.saved_tensor(0)?)?;
                $backward
            }
        }
    };
    (@ $type:ident, |$this:ident, $ctx:ident, $input:ident: $ref:ty| $forward:expr,
       |$that:ident, $back:ident, $grad:ident| $backward:expr) => {
        impl $crate::Function<$crate::Cpu> for $type {
            fn name(&self) -> &'static str {
                stringify!($type)
            }

            #[allow(unused_variables, reason = "few operations read all that they are given")]
            fn forward(
                &self,
                $ctx: &mut $crate::Context<$crate::Cpu>,
                inputs: &$crate::Inputs<'_, $crate::Cpu>,
            ) -> $crate::Result<$crate::Outputs<$crate::Cpu>> {
                $ctx.carry_grad_dtype();
                let ($this, $input): (_, $ref) = (self, inputs.get(0)?);
                let output: $crate::Result<$crate::DynTensor<$crate::Cpu>> = $forward;
                Ok(output?.into())
            }

            #[allow(unused_variables, reason = "few operations read all that they are given")]
            fn backward(
                &self,
                $back: &$crate::Context<$crate::Cpu>,
                grads: $crate::Gradients<$crate::Cpu>,
            ) -> $crate::Result<$crate::Gradients<$crate::Cpu>> {
                let ($that, $grad) = (self, $crate::cpu::ops::only($back, grads)?);
                let grad: $crate::Result<$crate::DynTensor<$crate::Cpu>> = $backward;
                Ok(grad?.into())
            }

            fn is_built_in(&self) -> bool {
                true
            }
        }
    };
}

/// Gives `DynTensor` and `Tensor` the method of a unary operation; typed tensors of `$bound` (`Float` or `Element`) have it.
macro_rules! unary_method {
    ($(#[$doc:meta])* $name:ident[$bound:ident]($($argument:ident: $type:ty),*) => $function:expr) => {
        impl $crate::DynTensor<$crate::Cpu> {
            $(#[$doc])*
            pub fn $name(&self $(, $argument: $type)*) -> $crate::Result<Self> {
                $crate::cpu::ops::apply_one($function, &[self])
            }
        }

        impl<D: $crate::$bound, G: $crate::typed::Over<D>> $crate::Tensor<D, G> {
            $(#[$doc])*
            pub fn $name(&self $(, $argument: $type)*) -> $crate::Result<$crate::cpu::ops::Unary<D, G>> {
                self.as_dyn().$name($($argument),*).and_then($crate::Tensor::settle)
            }
        }
    };
}

/// Gives `DynTensor` and `Tensor` the method of a binary operation; the expression is a closure of both operands.
macro_rules! binary_method {
    ($(#[$doc:meta])* $name:ident[$bound:ident] => $function:expr) => {
        impl $crate::DynTensor<$crate::Cpu> {
            $(#[$doc])*
            pub fn $name(&self, rhs: &Self) -> $crate::Result<Self> {
                let function: fn(&Self, &Self) -> _ = $function;
                $crate::cpu::ops::apply_one(function(self, rhs), &[self, rhs])
            }
        }

        impl<D: $crate::$bound, G> $crate::Tensor<D, G> {
            $(#[$doc])*
            pub fn $name<H>(&self, rhs: &$crate::Tensor<D, H>) -> $crate::Result<$crate::cpu::ops::Binary<D, G, H>>
            where
                G: $crate::typed::Join<H>,
                G::Output: $crate::typed::Over<D>,
            {
                self.as_dyn().$name(rhs.as_dyn()).and_then($crate::Tensor::settle)
            }
        }
    };
}

pub(crate) use {binary_method, unary_function, unary_method};
