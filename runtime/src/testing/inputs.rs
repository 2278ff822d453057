//! What a check takes as inputs: tensors of both layers, alone, in tuples or in lists, some of them left out.

use crate::autograd::DynTensor;
use crate::contract::GradDType;
use crate::dtype::Element;
use crate::typed::{GradType, Tensor};

/// An input of a check: its values, and in which dtype its gradient is to be kept.
#[derive(Clone, Debug)]
pub struct GivenInput {
    pub(super) tensor: Option<DynTensor>,
    pub(super) grad_dtype: Option<GradDType>,
}

/// One input of a check: a reference to a [`DynTensor`] or a [`Tensor`], or an `Option` of one.
pub trait CheckInput {
    /// The values, and the gradient dtype.
    #[doc(hidden)]
    fn given(&self) -> GivenInput;
}

impl CheckInput for &DynTensor {
    fn given(&self) -> GivenInput {
        GivenInput { tensor: Some(self.detach()), grad_dtype: self.grad_dtype() }
    }
}

impl<D: Element, G: GradType> CheckInput for &Tensor<D, G> {
    fn given(&self) -> GivenInput {
        GivenInput { tensor: Some(self.as_dyn().detach()), grad_dtype: self.grad_dtype() }
    }
}

impl<I: CheckInput> CheckInput for Option<I> {
    fn given(&self) -> GivenInput {
        self.as_ref().map_or(GivenInput { tensor: None, grad_dtype: None }, I::given)
    }
}

/// The inputs of a check: one [`CheckInput`], a tuple of up to eight of several types, or an array or slice of one type.
pub trait CheckInputs {
    /// All of them, in order.
    #[doc(hidden)]
    fn given(self) -> Vec<GivenInput>;
}

impl<I: CheckInput> CheckInputs for I {
    fn given(self) -> Vec<GivenInput> {
        vec![I::given(&self)]
    }
}

impl<I: CheckInput, const N: usize> CheckInputs for [I; N] {
    fn given(self) -> Vec<GivenInput> {
        self.iter().map(I::given).collect()
    }
}

impl<I: CheckInput, const N: usize> CheckInputs for &[I; N] {
    fn given(self) -> Vec<GivenInput> {
        self.iter().map(I::given).collect()
    }
}

impl<I: CheckInput> CheckInputs for &[I] {
    fn given(self) -> Vec<GivenInput> {
        self.iter().map(I::given).collect()
    }
}

macro_rules! tuples {
    ($($($name:ident $index:tt)+;)*) => {$(
        impl<$($name: CheckInput),+> CheckInputs for ($($name,)+) {
            fn given(self) -> Vec<GivenInput> {
                vec![$(CheckInput::given(&self.$index)),+]
            }
        }
    )*};
}
tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 F 4;
    A 0 B 1 C 2 D 3 F 4 G 5;
    A 0 B 1 C 2 D 3 F 4 G 5 H 6;
    A 0 B 1 C 2 D 3 F 4 G 5 H 6 I 7;
}
