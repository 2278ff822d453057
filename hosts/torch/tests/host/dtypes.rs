//! The dtype in which a gradient arrives, as PyTorch 2.14 measured it for `ctx.set_output_grad_dtype`.

use std::sync::{Arc, Mutex};

use gradpact::prelude::*;
use gradpact_torch::Torch;
use tch::Kind;

use crate::support::{Pass, Sends, backward, call, leaf, read, seen, values};

/// What `Pass` receives and what arrives at the leaf, if the consumer of its f16 output sends an f32 gradient of 1e-10.
fn received(grad: Option<GradDType>) -> (DType, f64, f64) {
    let x = leaf(&[1.0], Kind::Float);
    let (pass, log) = Pass::new(DType::F16, grad);
    let y = call(pass, &[&x]).unwrap().remove(0);
    assert_eq!(y.kind(), Kind::Half);
    let z = call(Sends { grad: 1e-10, dtype: DType::F32 }, &[&y]).unwrap().remove(0);
    backward(&z).unwrap();
    let (dtype, value) = seen(&log)[0];
    assert_eq!(x.grad().kind(), Kind::Float);
    (dtype, value, read(&x.grad())[0])
}

fn f32(value: f64) -> f64 {
    f64::from(value as f32)
}

#[test]
fn an_undeclared_f16_output_flushes_a_small_gradient_as_in_pytorch() {
    assert_eq!(received(None), (DType::F16, 0.0, 0.0));
}

#[test]
fn a_declared_f32_gradient_arrives_in_f32_and_unrounded() {
    assert_eq!(received(Some(GradDType::Exactly(DType::F32))), (DType::F32, f32(1e-10), f32(1e-10)));
}

#[test]
fn any_takes_the_gradient_as_it_comes() {
    assert_eq!(received(Some(GradDType::Any)), (DType::F32, f32(1e-10), f32(1e-10)));
}

#[test]
fn a_declared_f64_gradient_arrives_in_f64() {
    assert_eq!(received(Some(GradDType::Exactly(DType::F64))), (DType::F64, f32(1e-10), f32(1e-10)));
}

#[test]
fn every_pair_of_storage_and_gradient_dtype_arrives_as_declared() {
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E4M3, DType::F8E5M2];
    for storage in floats {
        for grad in floats {
            let x = leaf(&[1.0], Kind::Float);
            let (pass, log) = Pass::new(storage, GradDType::Exactly(grad));
            let y = call(pass, &[&x]).unwrap().remove(0);
            assert_eq!(gradpact_torch::grad_dtype(&y).unwrap(), Some(GradDType::Exactly(grad)));
            let z = call(Sends { grad: 0.5, dtype: DType::F32 }, &[&y]).unwrap().remove(0);
            backward(&z).unwrap();
            assert_eq!(seen(&log), [(grad, 0.5)], "{storage} declared {grad}");
            assert_eq!(x.grad().kind(), Kind::Float);
        }
    }
}

#[test]
fn a_chain_of_declared_functions_flushes_nowhere() {
    let chain = |grad: Option<GradDType>| {
        let x = leaf(&[1.0], Kind::Float);
        let (first, _) = Pass::new(DType::F16, grad);
        let (second, _) = Pass::new(DType::F16, grad);
        let y = call(first, &[&x]).unwrap().remove(0);
        let y = call(second, &[&y]).unwrap().remove(0);
        let z = call(Sends { grad: 1e-10, dtype: DType::F32 }, &[&y]).unwrap().remove(0);
        backward(&z).unwrap();
        read(&x.grad())[0]
    };
    assert_eq!(chain(None), 0.0);
    assert_eq!(chain(Some(GradDType::Exactly(DType::F32))), f32(1e-10));
}

#[test]
fn two_uses_are_summed_in_the_declared_dtype() {
    let x = leaf(&[1.0], Kind::Float);
    let (pass, log) = Pass::new(DType::F16, GradDType::Exactly(DType::F32));
    let y = call(pass, &[&x]).unwrap().remove(0);
    let a = call(Sends { grad: 1e-10, dtype: DType::F32 }, &[&y]).unwrap().remove(0);
    let b = call(Sends { grad: 1e-10, dtype: DType::F32 }, &[&y]).unwrap().remove(0);
    backward(&(a + b)).unwrap();
    assert_eq!(seen(&log), [(DType::F32, f64::from(2.0 * 1e-10_f32))]);
}

#[test]
fn seeds_of_any_dtype_are_converted_to_the_declared_one() {
    for (seed, dtype) in [(Kind::Half, 0.5), (Kind::Float, 1e-10), (Kind::Double, 1e-10)] {
        let x = leaf(&[1.0], Kind::Float);
        let (pass, log) = Pass::new(DType::F16, GradDType::Exactly(DType::F32));
        let y = call(pass, &[&x]).unwrap().remove(0);
        gradpact_torch::backward(&[(&y, Some(&values(&[dtype], seed)))], BackwardOptions::new()).unwrap();
        assert_eq!(seen(&log), [(DType::F32, f32(dtype))], "{seed:?}");
    }
}

#[test]
fn libtorchs_own_conversion_flushes_also_behind_a_declaration() {
    // Its backward converts to the storage dtype of `y` before the engine looks: no node can change that.
    let x = leaf(&[1.0], Kind::Float);
    let (pass, log) = Pass::new(DType::F16, GradDType::Exactly(DType::F32));
    let y = call(pass, &[&x]).unwrap().remove(0);
    backward(&(y.to_kind(Kind::Float).sum(Kind::Float) * 1e-10)).unwrap();
    assert_eq!(seen(&log), [(DType::F32, 0.0)]);
}

#[test]
fn a_leaf_keeps_its_gradient_in_the_dtype_set_for_it() {
    let x = leaf(&[1.0], Kind::Half);
    assert_eq!(gradpact_torch::grad_dtype(&x).unwrap(), Some(GradDType::Exactly(DType::F16)));
    gradpact_torch::set_grad_dtype(&x, GradDType::Exactly(DType::F32)).unwrap();
    assert_eq!(gradpact_torch::grad_dtype(&x).unwrap(), Some(GradDType::Exactly(DType::F32)));
    let z = call(Sends { grad: 1e-10, dtype: DType::F32 }, &[&x]).unwrap().remove(0);
    backward(&z).unwrap();
    assert_eq!((x.grad().kind(), read(&x.grad())[0]), (Kind::Float, f32(1e-10)));
    let refused = gradpact_torch::set_grad_dtype(&x, GradDType::Exactly(DType::I64)).unwrap_err();
    assert!(refused.to_string().contains("floating-point"), "{refused}");
    assert!(
        gradpact_torch::set_grad_dtype(&x, GradDType::Exactly(DType::F64)).is_err(),
        "a gradient is there"
    );
}

#[test]
fn the_gradient_of_an_output_itself_has_the_declared_dtype() {
    let x = leaf(&[1.0], Kind::Float);
    let (pass, log) = Pass::new(DType::F16, GradDType::Exactly(DType::F32));
    let y = call(pass, &[&x]).unwrap().remove(0);
    let z = call(Sends { grad: 1e-10, dtype: DType::F32 }, &[&y]).unwrap().remove(0);
    let grads = gradpact_torch::grad(&[(&z, None)], &[&y], BackwardOptions::new()).unwrap();
    let grad = grads[0].as_ref().unwrap();
    assert_eq!((grad.kind(), read(grad)[0]), (Kind::Float, f32(1e-10)));
    assert_eq!(seen(&log), [], "its own backward does not run");
}

/// Dtype and value of a gradient, if one came.
type Received = Option<(DType, f64)>;

/// Two outputs with different declarations; the second is not used.
struct Two {
    materialize: bool,
    log: Arc<Mutex<Vec<Received>>>,
}

impl Function<Torch> for Two {
    fn name(&self) -> &'static str {
        "Two"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32), GradDType::Exactly(DType::F64)])?;
        ctx.set_materialize_grads(self.materialize);
        let x = inputs.get(0)?;
        Ok([x.cast(DType::F16)?, x.cast(DType::BF16)?].into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        let of = |grad: &DynTensor<Torch>| (grad.dtype(), read(grad.array())[0]);
        *self.log.lock().unwrap() = grads.iter().map(|grad| grad.as_ref().map(of)).collect();
        Ok(grads[0].clone().into())
    }
}

#[test]
fn zeros_for_an_unused_output_have_the_declared_dtype_or_nothing_comes() {
    for materialize in [true, false] {
        let x = leaf(&[1.0], Kind::Float);
        let log = Arc::default();
        let outputs = call(Two { materialize, log: Arc::clone(&log) }, &[&x]).unwrap();
        let z = call(Sends { grad: 1e-10, dtype: DType::F32 }, &[&outputs[0]]).unwrap().remove(0);
        backward(&z).unwrap();
        let second = materialize.then_some((DType::F64, 0.0));
        assert_eq!(*log.lock().unwrap(), [Some((DType::F32, f32(1e-10))), second]);
    }
}
