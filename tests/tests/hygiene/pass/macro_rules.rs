//! Everything about the attribute comes from a macro's arguments: dtypes, names, generics, attributes, the item itself.

#![deny(warnings)]

use gradpact::prelude::*;

macro_rules! from_words {
    ($($name:ident: $out:ident, $grad:ident;)*) => {$(
        #[autograd_function(out = $out, grad = $grad)]
        struct $name;
        from_words!(@formulas $name $out $grad);
    )*};
    (@formulas $name:ident $out:ident $grad:ident) => {
        impl Op for $name {
            type Inputs = Tensor<$grad>;

            fn forward(&self, _: &mut Context, x: Value<$grad>) -> Result<Value<$out>> {
                x.cast()
            }

            fn backward(&self, _: &Context, grad: Value<$grad>) -> Result<Value<$grad>> {
                Ok(grad)
            }
        }
    };
}
from_words! { Silu: f16, f32; Gelu: bf16, f64; }

macro_rules! from_types {
    ($(#[$meta:meta])* $vis:vis $name:ident<$($parameter:ident: $bound:path),*>, $out:ty, $grad:ty, $field:ty) => {
        $(#[$meta])*
        #[autograd_function(out = ($out, $out), grad = ($grad, none))]
        $vis struct $name<$($parameter: $bound),*>($field);
    };
}
from_types!(#[derive(Clone)] pub(crate) Typed<T: Float>, T, f32, T);

macro_rules! around_an_item {
    ($runtime:path, $item:item) => {
        #[autograd_function(out = f16, crate = $runtime)]
        $item
    };
}
around_an_item!(gradpact, #[derive(Default)] struct Whole;);

macro_rules! with_its_own_path {
    ($($arguments:tt)*) => {
        #[$crate::attribute($($arguments)*, crate = $crate::runtime)]
        struct OwnPath;
    };
}
use gradpact::{self as runtime, autograd_function as attribute};
with_its_own_path!(out = (f16, i64), grad = (any, none));

fn has_contract<T: gradpact::Contract>(_: T) {}

fn main() {
    has_contract(Silu);
    has_contract(Gelu);
    has_contract(Typed(1.0_f32).clone());
    has_contract(Whole::default());
    has_contract(OwnPath);
}
