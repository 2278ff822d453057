//! The chain in candle: `CustomOp1`.

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor, Var, backprop::GradStore};

use super::Chain;
use crate::Outcome;

/// Passes its input on. candle saves the input of every operation, and wants new storage for the output.
struct Pass;

impl CustomOp1 for Pass {
    fn name(&self) -> &'static str {
        "pass"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((storage.clone(), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(grad.clone()))
    }
}

/// A chain of it.
#[derive(Debug)]
pub struct CandleChain {
    leaf: Var,
}

impl CandleChain {
    /// A chain on one element.
    ///
    /// # Errors
    /// None.
    pub fn new() -> Outcome<Self> {
        Ok(Self { leaf: Var::new(&[1.5_f32], &Device::Cpu)? })
    }
}

impl Chain for CandleChain {
    type End = Tensor;
    type Rest = (Tensor, GradStore);

    fn forward(&self, nodes: usize) -> Outcome<Tensor> {
        let mut y = self.leaf.as_tensor().clone();
        for _ in 0..nodes {
            y = y.apply_op1(Pass)?;
        }
        Ok(y)
    }

    fn backward(&self, end: Tensor) -> Outcome<(Tensor, GradStore)> {
        let grads = end.backward()?;
        Ok((end, grads))
    }
}
