//! The chain in burn: a custom backward step of `burn-autodiff`, on the ndarray engine.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn_ndarray::NdArray;
use burn_tensor::backend::BackendTypes;
use burn_tensor::{Tensor, TensorData};

use super::Chain;
use crate::Outcome;

type Engine = NdArray<f32>;
type Primitive = <Engine as BackendTypes>::FloatTensorPrimitive;
/// A tensor with its node.
type Tracked = <Autodiff<Engine> as BackendTypes>::FloatTensorPrimitive;

/// Passes its input on; its state is the saved input.
#[derive(Debug)]
struct Pass;

impl Backward<Engine, 1> for Pass {
    type State = Primitive;

    fn backward(self, ops: Ops<Primitive, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        std::hint::black_box(&ops.state);
        unary::<Engine, _>(ops.parents, ops.node, grads, |grad| grad);
    }
}

fn pass(x: &Tracked) -> Tracked {
    let prepared = Pass.prepare::<NoCheckpointing>([x.node.clone()]).compute_bound().stateful();
    match prepared {
        OpsKind::Tracked(step) => step.finish(x.primitive.clone(), x.primitive.clone()),
        OpsKind::UnTracked(step) => step.finish(x.primitive.clone()),
    }
}

/// A chain of it.
#[derive(Debug)]
pub struct BurnChain {
    values: Primitive,
}

impl BurnChain {
    /// A chain on one element.
    pub fn new() -> Self {
        let device = Default::default();
        let tensor = Tensor::<Engine, 1>::from_data(TensorData::from([1.5_f32]), &device);
        Self { values: tensor.into_primitive().tensor() }
    }
}

impl Default for BurnChain {
    fn default() -> Self {
        Self::new()
    }
}

impl Chain for BurnChain {
    type End = Tracked;
    type Rest = Gradients;

    const KEEPS_GRAPH: bool = false;

    fn forward(&self, nodes: usize) -> Outcome<Tracked> {
        let mut y = Tracked::new(self.values.clone()).require_grad();
        for _ in 0..nodes {
            y = pass(&y);
        }
        Ok(y)
    }

    fn backward(&self, end: Tracked) -> Outcome<Gradients> {
        Ok(end.backward())
    }
}
