// Backward takes a gradient for an output that has none.
use gradpact::prelude::*;

#[autograd_function(out = i64)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<i64>> { x.cast() }
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> { Ok(grad) }
}

fn main() {}
