//! The training step in burn, on the ndarray engine, which has no f16.

use burn_autodiff::Autodiff;
use burn_ndarray::NdArray;
use burn_tensor::{Tensor, TensorData, activation};

use super::{LAYERS, RATE, Size, Trains};
use crate::Outcome;

type Engine = Autodiff<NdArray<f32>>;

pub(super) struct Model {
    weights: Vec<Tensor<Engine, 2>>,
    x: Tensor<Engine, 2>,
}

impl Model {
    pub(super) fn new(size: Size) -> Self {
        let tensor = |values: Vec<f32>, rows: usize| {
            Tensor::from_data(TensorData::new(values, [rows, size.width]), &Default::default())
        };
        let weights = (0..LAYERS).map(|_| tensor(size.weights(), size.width).require_grad()).collect();
        Self { weights, x: tensor(size.input(), size.batch) }
    }
}

impl Trains for Model {
    fn step(&mut self) -> Outcome<f64> {
        let layer = |x: Tensor<Engine, 2>, w: &Tensor<Engine, 2>| activation::silu(x.matmul(w.clone()));
        let y = self.weights.iter().fold(self.x.clone(), layer);
        let loss = (y.clone() * y).mean();
        let grads = loss.backward();
        for w in &mut self.weights {
            let grad = w.grad(&grads).ok_or("no gradient")?;
            *w = Tensor::from_inner(w.clone().inner() - grad * RATE).require_grad();
        }
        Ok(f64::from(loss.into_scalar()))
    }
}
