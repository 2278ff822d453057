//! The training step in gradpact: in f32, and stored in f16 with gradients in f32.

use gradpact::optim::{Optimizer, Parameter, Sgd};
use gradpact::prelude::*;

use super::{LAYERS, RATE, Size, Trains};
use crate::Outcome;

/// `x · w`, stored in half precision, gradients in single. Its backward forms the products in f32.
#[autograd_function(out = f16, grad = f32)]
struct Linear;

impl Op for Linear {
    type Inputs = (Tensor<f16, f32>, Tensor<f16, f32>);

    fn forward(&self, ctx: &mut Context, (x, w): (Value<f16>, Value<f16>)) -> Result<Value<f16>> {
        ctx.save_for_backward((&x, &w));
        x.matmul(&w)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Value<f32>)> {
        let (x, w): (Value<f16>, Value<f16>) = ctx.saved()?;
        let dx = ctx.grad_if_needed(0, || grad.matmul(&w.cast::<f32>()?.transpose(0, 1)?))?;
        let dw = x.cast::<f32>()?.transpose(0, 1)?.matmul(&grad)?;
        Ok((dx, dw))
    }
}

fn step<T: Parameter>(optimizer: &mut Optimizer<Sgd>, weights: &mut [T], loss: &Tensor<f32>) -> Outcome<f64> {
    loss.backward()?;
    let mut params: Vec<&mut dyn Parameter> = Vec::new();
    for w in weights {
        params.push(w);
    }
    optimizer.step(&mut params)?;
    Ok(f64::from(loss.item()?))
}

/// Everything in f32, with built-in operations.
pub(super) struct Single {
    weights: Vec<Tensor<f32>>,
    x: Tensor<f32>,
    optimizer: Optimizer<Sgd>,
}

impl Single {
    pub(super) fn new(size: Size) -> Outcome<Self> {
        let shape = [size.width, size.width];
        let weight = |_| Tensor::<f32>::from_vec(size.weights(), shape)?.requiring_grad();
        let weights = (0..LAYERS).map(weight).collect::<Result<_>>()?;
        let x = Tensor::from_vec(size.input(), [size.batch, size.width])?;
        Ok(Self { weights, x, optimizer: Optimizer::new(Sgd::new(RATE))? })
    }
}

impl Trains for Single {
    fn step(&mut self) -> Outcome<f64> {
        let y = self.weights.iter().try_fold(self.x.clone(), |x, w| x.matmul(w)?.silu())?;
        let loss = y.mul(&y)?.mean()?;
        step(&mut self.optimizer, &mut self.weights, &loss)
    }
}

/// Weights and activations in f16, gradients in f32.
pub(super) struct Mixed {
    weights: Vec<Tensor<f16, f32>>,
    x: Tensor<f16, f32>,
    optimizer: Optimizer<Sgd>,
}

impl Mixed {
    pub(super) fn new(size: Size) -> Outcome<Self> {
        let shape = [size.width, size.width];
        let weight = |_| {
            let values = Tensor::<f32>::from_vec(size.weights(), shape)?.cast::<f16>()?;
            values.widen_grad::<f32>()?.requiring_grad()
        };
        let weights = (0..LAYERS).map(weight).collect::<Result<_>>()?;
        let x = Tensor::<f32>::from_vec(size.input(), [size.batch, size.width])?.cast::<f16>()?;
        Ok(Self { weights, x: x.widen_grad()?, optimizer: Optimizer::new(Sgd::new(RATE))? })
    }
}

impl Trains for Mixed {
    fn step(&mut self) -> Outcome<f64> {
        let y = self.weights.iter().try_fold(self.x.clone(), |x, w| Linear.apply((&x, w))?.silu())?;
        let y = y.cast::<f32>()?;
        let loss = y.mul(&y)?.mean()?;
        step(&mut self.optimizer, &mut self.weights, &loss)
    }
}
