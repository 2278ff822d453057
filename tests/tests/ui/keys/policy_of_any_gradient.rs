// Strict about gradients that may have any dtype.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = any, policy = strict)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: DynTensor) -> Result<Value<f32>> { grad.typed() }
}

fn main() {}
