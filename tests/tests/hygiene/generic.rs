//! MO-22: one generic Function for several dtypes and engines in one program; each instance has its own contract.

use core::marker::PhantomData;

use gradpact::function::Graph;
use gradpact::prelude::*;
use gradpact_tests::toy::{Toy, ToyArray};

/// Stores its input in `D` and takes its gradient in `G`.
#[autograd_function(out = D, grad = G)]
#[derive(Clone, Copy, Debug, Default)]
struct Store<D: Float, G: Float> {
    dtypes: PhantomData<(D, G)>,
}

impl<D: Float, G: Float, E: Graph> Op<E> for Store<D, G> {
    type Inputs = Tensor<f32, f32, E>;

    fn forward(&self, _: &mut Context<E>, x: Value<f32, E>) -> Result<Value<D, E>> {
        x.cast()
    }

    fn backward(&self, _: &Context<E>, grad: Value<G, E>) -> Result<Value<f32, E>> {
        assert_eq!(grad.dtype(), G::DTYPE);
        grad.cast()
    }
}

/// Applies `Store<D, G>` to `x` and sends `seed` back.
fn store<D: Float, G: Float, E: Graph>(x: &Tensor<f32, f32, E>, seed: &Tensor<f32, f32, E>) -> Result<()> {
    let y: Tensor<D, G, E> = Store::<D, G>::default().apply(x)?;
    assert_eq!(y.dtype(), D::DTYPE);
    assert_eq!(y.grad_dtype(), Some(GradDType::Exactly(G::DTYPE)));
    y.backward_with(seed, BackwardOptions::new())
}

#[test]
fn every_instance_has_its_own_contract() -> Result<()> {
    let x = Tensor::<f32>::from_vec(vec![1.5], [1])?.requiring_grad()?;
    let seed = Tensor::<f32>::from_vec(vec![1.0], [1])?;
    store::<f16, f32, _>(&x, &seed)?;
    store::<bf16, f64, _>(&x, &seed)?;
    let grad = x.grad().map(|grad| grad.to_vec()).transpose()?;
    assert_eq!(grad, Some(vec![2.0]));
    Ok(())
}

#[test]
fn another_engine_has_the_same_contract() -> Result<()> {
    let toy = |value| DynTensor::<Toy>::from_array(ToyArray::new(DType::F32, [1], [value])).typed();
    let x: Tensor<f32, f32, Toy> = toy(1.5)?;
    let x = x.requiring_grad()?;
    store::<f16, f32, _>(&x, &toy(1.0)?)?;
    store::<f8e4m3, bf16, _>(&x, &toy(1.0)?)?;
    let grad = x.grad().map(|grad| grad.as_dyn().array().values().to_vec());
    assert_eq!(grad, Some(vec![2.0]));
    Ok(())
}
