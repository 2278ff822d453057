//! Bounds and where clauses reach every impl.

#![deny(warnings)]

use core::fmt::Debug;
use core::marker::PhantomData;
use core::ops::Mul;

use gradpact::prelude::*;

#[autograd_function(out = T, grad = f32)]
struct Scale<T: Element + 'static, F>
where
    T: Mul<Output = T>,
    F: Fn(T) -> T + Debug + Send + Sync + 'static,
    Self: Sized,
{
    factor: F,
    dtype: PhantomData<T>,
}

impl<T, F> Op for Scale<T, F>
where
    T: Float + Mul<Output = T>,
    F: Fn(T) -> T + Debug + Send + Sync + 'static,
{
    type Inputs = Tensor<T, f32>;

    fn forward(&self, _: &mut Context, x: Value<T>) -> Result<Value<T>> {
        let _ = (&self.factor, self.dtype);
        Ok(x)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

fn is_op<T: Op>() {}

fn main() {
    is_op::<Scale<f32, Identity<f32>>>();
    is_op::<Scale<f64, Identity<f64>>>();
}

type Identity<T> = fn(T) -> T;
