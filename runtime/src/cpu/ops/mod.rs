//! Operations with gradients on the CPU engine: a file for each family. Each operation is a Function like the user's.
//!
//! An operation has a method on [`DynTensor`], where the arithmetic promotes dtypes, and a twin on [`Tensor`], which asks
//! for equal storage dtypes and tells the gradient dtype of the result in its type.

mod arithmetic;
mod reduce;

use crate::autograd::DynTensor;
use crate::engine::Cpu;
use crate::error::{Error, Place, Result};
use crate::function::{Context, Function, apply};
use crate::shape::Shape;

/// Applies an operation that has one output.
pub(crate) fn apply_one<F: Function<Cpu>>(function: F, inputs: &[&DynTensor<Cpu>]) -> Result<DynTensor<Cpu>> {
    let name = function.name();
    let output = apply(function, inputs)?.pop();
    output.ok_or_else(|| Error::ValueCount { function: name.to_owned(), what: "outputs", expected: 1, got: 0 })
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

/// Gives `DynTensor` and `Tensor` the method of a unary operation.
macro_rules! unary_method {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) => $function:expr) => {
        impl $crate::DynTensor<$crate::Cpu> {
            $(#[$doc])*
            pub fn $name(&self $(, $argument: $type)*) -> $crate::Result<Self> {
                $crate::cpu::ops::apply_one($function, &[self])
            }
        }

        impl<D: $crate::Element, G: $crate::typed::Over<D>> $crate::Tensor<D, G> {
            $(#[$doc])*
            pub fn $name(&self $(, $argument: $type)*) -> $crate::Result<$crate::cpu::ops::Unary<D, G>> {
                self.as_dyn().$name($($argument),*).map($crate::Tensor::wrap)
            }
        }
    };
}

/// Gives `DynTensor` and `Tensor` the method of a binary operation; the expression is a closure of both operands.
macro_rules! binary_method {
    ($(#[$doc:meta])* $name:ident => $function:expr) => {
        impl $crate::DynTensor<$crate::Cpu> {
            $(#[$doc])*
            pub fn $name(&self, rhs: &Self) -> $crate::Result<Self> {
                let function: fn(&Self, &Self) -> _ = $function;
                $crate::cpu::ops::apply_one(function(self, rhs), &[self, rhs])
            }
        }

        impl<D: $crate::Element, G> $crate::Tensor<D, G> {
            $(#[$doc])*
            pub fn $name<H>(&self, rhs: &$crate::Tensor<D, H>) -> $crate::Result<$crate::cpu::ops::Binary<D, G, H>>
            where
                G: $crate::typed::Join<H>,
                G::Output: $crate::typed::Over<D>,
            {
                self.as_dyn().$name(rhs.as_dyn()).map($crate::Tensor::wrap)
            }
        }
    };
}

pub(crate) use {binary_method, unary_method};
