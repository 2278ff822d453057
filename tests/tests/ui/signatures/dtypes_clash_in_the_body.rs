// Backward multiplies the f32 gradient by a saved f16 value.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> { let x: Value<f16> = ctx.saved()?; grad.mul(&x) }
}

fn main() {}
