// Several mistakes: storage, gradient dtype and result, one a line.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> { x.cast() }
    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> { Ok(grad) }
}

fn storage(x: &Tensor<f64>) -> Result<Tensor<f16, f32>> { Silu.apply(x) }
fn gradient(x: &Tensor<f32, f64>) -> Result<Tensor<f16, f32>> { Silu.apply(x) }
fn result(x: &Tensor<f32>) -> Result<Tensor<f16, bf16>> { Silu.apply(x) }
fn main() {}
