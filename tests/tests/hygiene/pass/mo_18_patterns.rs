//! Arguments of the formulas as patterns.

#![deny(warnings)]

use gradpact::prelude::*;

#[autograd_function(out = (f16, f16), grad = (f32, none))]
struct Pair;

impl Op for Pair {
    type Inputs = (Tensor<f32>, Tensor<f32>, Option<Tensor<f32>>);

    fn forward(
        self: &Self,
        _: &mut Context,
        (mut a, _, _): (Value<f32>, Value<f32>, Option<Value<f32>>),
    ) -> Result<(Value<f16>, Value<f16>)> {
        a = a.detach();
        Ok((a.cast()?, a.cast()?))
    }

    fn backward(
        &self,
        &Context { .. }: &Context,
        (ref grad, ()): (Value<f32>, ()),
    ) -> Result<(Value<f32>, Value<f32>, Option<Value<f32>>)> {
        Ok((grad.clone(), grad.clone(), None))
    }
}

fn is_function<T: Function>(_: T) {}

fn main() {
    is_function(Pair);
}
