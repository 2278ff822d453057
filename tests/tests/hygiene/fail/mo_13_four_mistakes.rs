// An unknown dtype, an unknown key, a gradient for an integer, and one parameter too few.
use gradpact::prelude::*;

#[autograd_function(out = (fp16, i64), grad = (f32, any), momentum = 0.9)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<(Value<f16>, Value<i64>)> { Ok((x.cast()?, x.cast()?)) }
    fn backward(&self, grad: (Value<f32>, ())) -> Result<Value<f32>> { Ok(grad.0) }
}

fn main() {}
