// Several mistakes: wrong dtypes in both methods.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;
    fn forward(&self, _: &mut Context, x: Value<f64>) -> Result<Value<f64>> { Ok(x) }
    fn backward(&self, _: &Context, grad: Value<f64>) -> Result<Value<f64>> { Ok(grad) }
}

fn main() {}
