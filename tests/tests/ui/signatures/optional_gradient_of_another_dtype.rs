// A gradient that may be missing, in the storage dtype.
use gradpact::prelude::*;

#[autograd_function(out = (f16, i64), grad = (f32, none), materialize = false)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<(Value<f16>, Value<i64>)> { Ok((x.cast()?, x.cast()?)) }
    fn backward(&self, _: &Context, (grad, ()): (Option<Value<f16>>, ())) -> Result<Value<f32>> { grad.unwrap().cast() }
}

fn main() {}
