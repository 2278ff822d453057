// The input is moved instead of borrowed.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> { Ok(grad) }
}

fn model(x: Tensor<f32>) -> Result<Tensor<f16, f32>> { Silu.apply(x) }
fn main() {}
