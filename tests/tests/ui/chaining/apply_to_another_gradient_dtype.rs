// An input whose gradient arrives in f32 where f16 was declared.
use gradpact::prelude::*;

#[autograd_function(out = f16)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f16>;
    fn forward(&self, _: &mut Context, x: Value<f16>) -> Result<Value<f16>> { Ok(x) }
    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f16>> { Ok(grad) }
}

fn model(x: &Tensor<f16, f32>) -> Result<Tensor<f16>> { Silu.apply(x) }
fn main() {}
