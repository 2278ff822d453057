//! What a Function takes and returns: one tensor, or a tuple of up to eight.

use super::grad_type::{AnyGrad, Float, GradType, NoGrad};
use super::tensor::{Tensor, Value};
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::dtype::Element;
use crate::engine::Engine;
use crate::error::{Error, Place, Result};
use crate::function::Inputs;

/// One tensor type among a Function's inputs or outputs: a [`Tensor`], or an `Option` of one as an input.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an input or output of a Function on this engine",
    label = "not a tensor type",
    note = "use `Tensor<D>`, `Tensor<D, G>`, or for an input that may be missing `Option<Tensor<D, G>>`",
    note = "what is not a tensor is a field of the struct"
)]
pub trait Slot<E: Engine>: Sized {
    /// What `forward` sees of it.
    type Value;
    /// Its gradient.
    type Grad;
    /// What `apply` takes for it.
    type Ref<'a>
    where
        Self: 'a;

    /// The dynamic tensor behind a reference.
    #[doc(hidden)]
    fn as_dyn<'a>(reference: Self::Ref<'a>) -> Option<&'a DynTensor<E>>
    where
        Self: 'a;

    /// The value of an input.
    #[doc(hidden)]
    fn value(inputs: &Inputs<'_, E>, position: usize) -> Result<Self::Value>;

    /// The gradient that `backward` receives.
    #[doc(hidden)]
    fn grad(function: &'static str, position: usize, grad: Option<DynTensor<E>>) -> Result<Self::Grad>;

    /// The gradient that `backward` returned.
    #[doc(hidden)]
    fn into_dyn(grad: Self::Grad) -> Option<DynTensor<E>>;
}

/// A [`Slot`] that can be an output: a [`Tensor`].
pub trait OutputSlot<E: Engine>: Slot<E> {
    /// The output that `forward` returned.
    #[doc(hidden)]
    fn output(value: Self::Value) -> DynTensor<E>;

    /// The tensor that `apply` returns.
    #[doc(hidden)]
    fn tensor(output: DynTensor<E>) -> Self;
}

/// The inputs or the outputs of a Function: a [`Slot`], or a tuple of up to eight of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the inputs or outputs of a Function on this engine",
    label = "not a tensor type, nor a tuple of up to 8 of them",
    note = "use `Tensor<D>`, `Tensor<D, G>`, or a tuple of up to 8 of these; a Function of more tensors implements \
            `Function` by hand",
    note = "tensors of another engine than gradpact's own need `impl Op<ThatEngine> for …`, and the prelude of that engine",
    note = "what is not a tensor is a field of the struct"
)]
pub trait Tensors<E: Engine>: Sized {
    /// How many tensors these are.
    #[doc(hidden)]
    const COUNT: usize;

    /// What `forward` takes for inputs, and returns for outputs.
    type Values;
    /// What `backward` receives for outputs, and returns for inputs.
    type Grads;
    /// What `apply` takes.
    type Refs<'a>
    where
        Self: 'a;

    /// Gives the dynamic tensors behind the references to `body`.
    #[doc(hidden)]
    fn with_dyn<'a, R>(refs: Self::Refs<'a>, body: impl FnOnce(&[Option<&'a DynTensor<E>>]) -> R) -> R
    where
        Self: 'a;

    /// The values of the inputs.
    #[doc(hidden)]
    fn values(inputs: &Inputs<'_, E>) -> Result<Self::Values>;

    /// The gradients that `backward` receives, taken out of what arrived.
    #[doc(hidden)]
    fn grads(function: &'static str, grads: &mut [Option<DynTensor<E>>]) -> Result<Self::Grads>;

    /// The gradients that `backward` returned.
    #[doc(hidden)]
    fn into_gradients(grads: Self::Grads) -> Gradients<E>;
}

/// [`Tensors`] that can be outputs: none of them optional.
pub trait OutputTensors<E: Engine>: Tensors<E> {
    /// The outputs that `forward` returned.
    #[doc(hidden)]
    fn outputs(values: Self::Values) -> Outputs<E>;

    /// The tensors that `apply` returns.
    #[doc(hidden)]
    fn tensors(function: &'static str, outputs: Outputs<E>) -> Result<Self>;
}

/// The value of an input whose storage dtype is `D`.
#[inline]
fn value_of<D: Element, E: Engine>(
    inputs: &Inputs<'_, E>,
    position: usize,
    tensor: &DynTensor<E>,
) -> Result<Value<D, E>> {
    if tensor.dtype() == D::DTYPE {
        return Ok(Value::wrap(tensor.clone()));
    }
    let place = Box::new(Place::input(inputs.function(), position));
    Err(Error::ValueDType { place, expected: D::DTYPE, got: tensor.dtype() })
}

/// The gradient of an output that has the floating gradient dtype `G`.
#[inline]
fn grad_of<G: Float, E: Engine>(
    function: &'static str,
    position: usize,
    grad: Option<DynTensor<E>>,
) -> Result<Value<G, E>> {
    let place = || Box::new(Place::output(function, position));
    let grad = grad.ok_or_else(|| Error::AbsentGradient(place()))?;
    if grad.dtype() == G::DTYPE {
        return Ok(Value::wrap(grad));
    }
    Err(Error::ValueDType { place: place(), expected: G::DTYPE, got: grad.dtype() })
}

/// The parts of a slot that do not depend on the kind of gradient.
macro_rules! slot_of_a_tensor {
    ($gradient:ty) => {
        type Value = Value<D, E>;
        type Ref<'a>
            = &'a Self
        where
            Self: 'a;

        fn as_dyn<'a>(reference: &'a Self) -> Option<&'a DynTensor<E>>
        where
            Self: 'a,
        {
            Some(reference.as_dyn())
        }

        fn value(inputs: &Inputs<'_, E>, position: usize) -> Result<Self::Value> {
            value_of(inputs, position, inputs.get(position)?)
        }

        type Grad = $gradient;
    };
}

impl<D, G, E: Engine> OutputSlot<E> for Tensor<D, G, E>
where
    Self: Slot<E, Value = Value<D, E>>,
{
    fn output(value: Value<D, E>) -> DynTensor<E> {
        value.into_dyn()
    }

    fn tensor(output: DynTensor<E>) -> Self {
        Self::wrap(output)
    }
}

impl<D: Element, G: Float, E: Engine> Slot<E> for Tensor<D, G, E> {
    slot_of_a_tensor!(Value<G, E>);

    fn grad(function: &'static str, position: usize, grad: Option<DynTensor<E>>) -> Result<Self::Grad> {
        grad_of(function, position, grad)
    }

    fn into_dyn(grad: Self::Grad) -> Option<DynTensor<E>> {
        Some(grad.into_dyn())
    }
}

impl<D: Element, E: Engine> Slot<E> for Tensor<D, AnyGrad, E> {
    slot_of_a_tensor!(DynTensor<E>);

    fn grad(function: &'static str, position: usize, grad: Option<DynTensor<E>>) -> Result<Self::Grad> {
        grad.ok_or_else(|| Error::AbsentGradient(Box::new(Place::output(function, position))))
    }

    fn into_dyn(grad: Self::Grad) -> Option<DynTensor<E>> {
        Some(grad)
    }
}

/// Tensors without a gradient: nothing is received for them, and nothing can be returned.
macro_rules! without_gradient {
    ($($gradient:ty)*) => {$(
        impl<D: Element, E: Engine> Slot<E> for Tensor<D, $gradient, E> {
            slot_of_a_tensor!(());

            fn grad(_: &'static str, _: usize, _: Option<DynTensor<E>>) -> Result<()> {
                Ok(())
            }

            fn into_dyn((): ()) -> Option<DynTensor<E>> {
                None
            }
        }
    )*};
}
without_gradient! { NoGrad bool u8 i8 i16 i32 i64 }

/// An input that may be missing; so may its gradient.
impl<D: Element, G: GradType, E: Engine> Slot<E> for Option<Tensor<D, G, E>>
where
    Tensor<D, G, E>: for<'a> Slot<E, Value = Value<D, E>, Ref<'a> = &'a Tensor<D, G, E>>,
{
    type Value = Option<Value<D, E>>;
    type Grad = Option<<Tensor<D, G, E> as Slot<E>>::Grad>;
    type Ref<'a>
        = Option<&'a Tensor<D, G, E>>
    where
        Self: 'a;

    fn as_dyn<'a>(reference: Self::Ref<'a>) -> Option<&'a DynTensor<E>>
    where
        Self: 'a,
    {
        reference.map(Tensor::as_dyn)
    }

    fn value(inputs: &Inputs<'_, E>, position: usize) -> Result<Self::Value> {
        inputs.optional(position).map(|tensor| value_of(inputs, position, tensor)).transpose()
    }

    fn grad(function: &'static str, position: usize, grad: Option<DynTensor<E>>) -> Result<Self::Grad> {
        grad.map(|grad| <Tensor<D, G, E> as Slot<E>>::grad(function, position, Some(grad))).transpose()
    }

    fn into_dyn(grad: Self::Grad) -> Option<DynTensor<E>> {
        grad.and_then(<Tensor<D, G, E> as Slot<E>>::into_dyn)
    }
}

macro_rules! single {
    ([$($generics:tt)*] $slot:ty) => {
        impl<$($generics)*, E: Engine> Tensors<E> for $slot
        where
            Self: Slot<E>,
        {
            const COUNT: usize = 1;

            type Values = <Self as Slot<E>>::Value;
            type Grads = <Self as Slot<E>>::Grad;
            type Refs<'a>
                = <Self as Slot<E>>::Ref<'a>
            where
                Self: 'a;

            fn with_dyn<'a, R>(refs: Self::Refs<'a>, body: impl FnOnce(&[Option<&'a DynTensor<E>>]) -> R) -> R
            where
                Self: 'a,
            {
                body(&[<Self as Slot<E>>::as_dyn(refs)])
            }

            fn values(inputs: &Inputs<'_, E>) -> Result<Self::Values> {
                <Self as Slot<E>>::value(inputs, 0)
            }

            fn grads(function: &'static str, grads: &mut [Option<DynTensor<E>>]) -> Result<Self::Grads> {
                <Self as Slot<E>>::grad(function, 0, grads.first_mut().and_then(Option::take))
            }

            fn into_gradients(grads: Self::Grads) -> Gradients<E> {
                <Self as Slot<E>>::into_dyn(grads).into()
            }
        }
    };
}
single!([D, G] Tensor<D, G, E>);
single!([D, G] Option<Tensor<D, G, E>>);

impl<D, G, E: Engine> OutputTensors<E> for Tensor<D, G, E>
where
    Self: OutputSlot<E>,
{
    fn outputs(values: Self::Values) -> Outputs<E> {
        <Self as OutputSlot<E>>::output(values).into()
    }

    fn tensors(function: &'static str, outputs: Outputs<E>) -> Result<Self> {
        let wrong = |outputs: Outputs<E>| count(function, 1, outputs.len());
        outputs.single().map(<Self as OutputSlot<E>>::tensor).map_err(wrong)
    }
}

/// The outputs as an array, if there are `N`.
fn exactly<E: Engine, const N: usize>(
    function: &'static str,
    outputs: Outputs<E>,
) -> Result<[DynTensor<E>; N]> {
    let got = outputs.len();
    let outputs: Vec<_> = outputs.into_iter().collect();
    outputs.try_into().map_err(|_| count(function, N, got))
}

#[cold]
fn count(function: &str, expected: usize, got: usize) -> Error {
    Error::ValueCount { function: function.to_owned(), what: "outputs", expected, got }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident $index:tt)+;)*) => {$(
        impl<E: Engine, $($name: Slot<E>),+> Tensors<E> for ($($name,)+) {
            const COUNT: usize = $count;

            type Values = ($($name::Value,)+);
            type Grads = ($($name::Grad,)+);
            type Refs<'a> = ($($name::Ref<'a>,)+) where Self: 'a;

            fn with_dyn<'a, R>(refs: Self::Refs<'a>, body: impl FnOnce(&[Option<&'a DynTensor<E>>]) -> R) -> R
            where
                Self: 'a,
            {
                body(&[$($name::as_dyn(refs.$index)),+])
            }

            fn values(inputs: &Inputs<'_, E>) -> Result<Self::Values> {
                Ok(($($name::value(inputs, $index)?,)+))
            }

            fn grads(function: &'static str, grads: &mut [Option<DynTensor<E>>]) -> Result<Self::Grads> {
                Ok(($($name::grad(function, $index, grads.get_mut($index).and_then(Option::take))?,)+))
            }

            fn into_gradients(grads: Self::Grads) -> Gradients<E> {
                [$($name::into_dyn(grads.$index)),+].into()
            }
        }

        impl<E: Engine, $($name: OutputSlot<E>),+> OutputTensors<E> for ($($name,)+) {
            fn outputs(values: Self::Values) -> Outputs<E> {
                [$($name::output(values.$index)),+].into()
            }

            fn tensors(function: &'static str, outputs: Outputs<E>) -> Result<Self> {
                let mut outputs = exactly::<E, $count>(function, outputs)?.into_iter();
                let mut next = |position| {
                    outputs.next().ok_or_else(|| Error::NoSuchOutput {
                        call: "apply",
                        place: Box::new(Place::output(function, position)),
                        outputs: $count,
                    })
                };
                Ok(($($name::tensor(next($index)?),)+))
            }
        }
    )*};
}
tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 F 4;
    6: A 0 B 1 C 2 D 3 F 4 G 5;
    7: A 0 B 1 C 2 D 3 F 4 G 5 H 6;
    8: A 0 B 1 C 2 D 3 F 4 G 5 H 6 I 7;
}
