//! Saved tensors with their types.

use super::tensor::{Tensor, Value};
use crate::autograd::{DynTensor, Origin};
use crate::dtype::{DType, Element};
use crate::engine::{Array, Engine};
use crate::error::{Error, Result};
use crate::function::{Context, Placeholder, SaveForBackward};
use crate::list::List;
use crate::shape::Shape;

impl<D, G, E: Engine> SaveForBackward<E> for &Tensor<D, G, E> {
    fn push_all(self, list: &mut List<DynTensor<E>>) -> Result<()> {
        self.as_dyn().push_all(list)
    }
}

/// An optional input: backward asks for an `Option<Value<D>>`.
impl<D, G, E: Engine> SaveForBackward<E> for &Option<Tensor<D, G, E>> {
    fn push_all(self, list: &mut List<DynTensor<E>>) -> Result<()> {
        match self {
            Some(tensor) => tensor.push_all(list),
            None => {
                list.push(DynTensor::absent()?);
                Ok(())
            }
        }
    }
}

impl<D: Element, E: Engine> Placeholder for Value<D, E> {
    fn placeholder() -> Result<Self> {
        E::Array::full(&Shape::scalar(), 0.0, D::DTYPE).map(|array| Self::wrap(DynTensor::from_array(array)))
    }
}

/// What [`Context::saved`] gives: a `Value<D>`, an `Option` of one, or a tuple of up to eight of these.
pub trait FromSaved<E: Engine>: Sized {
    /// How many tensors it takes.
    #[doc(hidden)]
    const COUNT: usize;

    /// Takes them from `position` on.
    #[doc(hidden)]
    fn take(ctx: &Context<E>, position: usize) -> Result<Self>;
}

impl<D: Element, E: Engine> FromSaved<E> for Value<D, E> {
    const COUNT: usize = 1;

    fn take(ctx: &Context<E>, position: usize) -> Result<Self> {
        let tensor = ctx.saved_tensor(position)?;
        if matches!(tensor.origin(), Origin::Absent) {
            return Err(Error::Saved {
                function: ctx.function().to_owned(),
                position,
                expected: format!("a {} tensor", D::DTYPE),
                got: "an input that was not given; ask for an `Option<Value>`".to_owned(),
            });
        }
        if tensor.dtype() == D::DTYPE {
            return Ok(Self::wrap(tensor.clone()));
        }
        Err(wrong_dtype(ctx.function(), position, D::DTYPE, tensor.dtype()))
    }
}

impl<D: Element, E: Engine> FromSaved<E> for Option<Value<D, E>> {
    const COUNT: usize = 1;

    fn take(ctx: &Context<E>, position: usize) -> Result<Self> {
        match ctx.saved_tensor(position)?.origin() {
            Origin::Absent => Ok(None),
            _ => Value::take(ctx, position).map(Some),
        }
    }
}

#[cold]
fn wrong_dtype(function: &str, position: usize, expected: DType, got: DType) -> Error {
    Error::Saved {
        function: function.to_owned(),
        position,
        expected: format!("a {expected} tensor"),
        got: format!("{got}; ask for `Value<{got}>` and cast it"),
    }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident $index:tt)+;)*) => {$(
        impl<E: Engine, $($name: FromSaved<E>),+> FromSaved<E> for ($($name,)+) {
            const COUNT: usize = $count;

            fn take(ctx: &Context<E>, position: usize) -> Result<Self> {
                Ok(($($name::take(ctx, position + $index)?,)+))
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

impl<E: Engine> Context<E> {
    /// The tensors that forward saved, all of them, typed.
    ///
    /// # Errors
    /// [`Error::SavedFreed`] if an earlier backward freed them; [`Error::Saved`] if there is another number of them, or one
    /// has another dtype.
    pub fn saved<S: FromSaved<E>>(&self) -> Result<S> {
        let got = self.saved_tensors()?.len();
        if got != S::COUNT {
            let function = self.function().to_owned();
            return Err(Error::SavedCount { function, asked: S::COUNT, saved: got });
        }
        S::take(self, 0)
    }
}
