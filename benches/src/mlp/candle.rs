//! The training step in candle. A gradient has the dtype of its tensor there, so in f16 gradients are f16.

use candle_core::{Device, Tensor, Var};
use gradpact::DType;

use super::{LAYERS, RATE, Size, Trains};
use crate::Outcome;
use crate::elementwise::candle_dtype;

pub(super) struct Model {
    weights: Vec<Var>,
    x: Tensor,
}

impl Model {
    pub(super) fn new(size: Size, dtype: DType) -> Outcome<Self> {
        let dtype = candle_dtype(dtype)?;
        let tensor = |values: Vec<f32>, rows: usize| {
            Tensor::from_vec(values, (rows, size.width), &Device::Cpu)?.to_dtype(dtype)
        };
        let weight = |_| Var::from_tensor(&tensor(size.weights(), size.width)?);
        let weights = (0..LAYERS).map(weight).collect::<candle_core::Result<_>>()?;
        Ok(Self { weights, x: tensor(size.input(), size.batch)? })
    }
}

impl Trains for Model {
    fn step(&mut self) -> Outcome<f64> {
        let y = self.weights.iter().try_fold(self.x.clone(), |x, w| x.matmul(w)?.silu())?;
        let y = y.to_dtype(candle_core::DType::F32)?;
        let loss = (&y * &y)?.mean_all()?;
        let grads = loss.backward()?;
        for w in &self.weights {
            let grad = grads.get(w).ok_or("no gradient")?;
            w.set(&w.sub(&(grad * RATE)?)?)?;
        }
        Ok(f64::from(loss.to_scalar::<f32>()?))
    }
}
