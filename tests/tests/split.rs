//! The graph and the typed layer run on an engine that knows nothing of the embedded one.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use gradpact::prelude::*;
use gradpact::typed::Tensors;
use gradpact_tests::toy::{self, Toy, ToyTensor};

/// `x · x`, stored in f16, gradient in f32.
#[autograd_function(out = f16, grad = f32)]
struct Square;

impl Op<Toy> for Square {
    type Inputs = Tensor<f32, f32, Toy>;

    fn forward(&self, ctx: &mut Context<Toy>, x: Value<f32, Toy>) -> Result<Value<f16, Toy>> {
        ctx.save_for_backward(&x);
        toy::mul(x.as_dyn(), x.as_dyn())?.cast(DType::F16)?.typed()
    }

    fn backward(&self, ctx: &Context<Toy>, grad: Value<f32, Toy>) -> Result<Value<f32, Toy>> {
        let x: Value<f32, Toy> = ctx.saved()?;
        let twice = toy::add(x.as_dyn(), x.as_dyn())?;
        toy::mul(&twice, grad.as_dyn())?.typed()
    }
}

fn leaf(values: &[f64]) -> Tensor<f32, f32, Toy> {
    toy::tensor(DType::F32, values).requiring_grad().unwrap().typed().unwrap()
}

fn values(tensor: &ToyTensor) -> Vec<f64> {
    tensor.array().values().to_vec()
}

#[test]
fn an_annotated_function_keeps_its_contract_on_another_engine() {
    let x = leaf(&[3.0]);
    let y: Tensor<f16, f32, Toy> = Square.apply(&x).unwrap();
    assert_eq!(y.dtype(), DType::F16);
    assert_eq!(y.grad_dtype(), Some(GradDType::Exactly(DType::F32)));
    let seed = toy::tensor(DType::F32, &[1e-10]);
    y.as_dyn().backward_with(&seed, BackwardOptions::new()).unwrap();
    assert_eq!(values(&x.as_dyn().grad().unwrap()), [f64::from(6.0 * 1e-10_f32)]);
}

#[test]
fn a_second_derivative_goes_through_an_annotated_function() {
    let x = leaf(&[3.0]);
    let y = Square.apply(&x).unwrap();
    let options = BackwardOptions::new().create_graph();
    let first = gradpact::grad(&[(y.as_dyn(), None)], &[x.as_dyn()], options).unwrap();
    let first = first[0].clone().unwrap();
    assert_eq!(values(&first), [6.0]);
    let second = gradpact::grad(&[(&first, None)], &[x.as_dyn()], BackwardOptions::new()).unwrap();
    assert_eq!(values(second[0].as_ref().unwrap()), [2.0]);
}

#[test]
fn types_that_default_to_the_embedded_engine_do_not_need_it() {
    fn outputs<T: Tensors<Toy>>() {}
    outputs::<(Tensor<f16, f32, Toy>, Tensor<bf16, AnyGrad, Toy>)>();
}
