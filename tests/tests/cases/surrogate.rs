//! A16: forward and backward written by hand, with a declaration for each output.

use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{Seen, of, options, values};

/// 1 where x > 0, else 0; its backward is that of an arctangent.
#[autograd_function(out = f16, grad = f32)]
struct Spike;

impl Op for Spike {
    type Inputs = Tensor<f16, f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f16>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.sign()?.relu()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x = ctx.saved::<Value<f16>>()?.cast::<f32>()?.mul_scalar(core::f64::consts::PI)?;
        grad.div(&x.mul(&x)?.add_scalar(1.0)?)
    }
}

#[test]
fn o_64_a_step_can_have_a_surrogate_gradient() {
    let x = [-1.0, 0.0, 0.5].map(f16::from_f32);
    let x = Tensor::<f16>::from_slice(&x, [3]).unwrap().requiring_grad_in::<f32>().unwrap();
    let spikes = Spike.apply(&x).unwrap();
    assert_eq!(values(spikes.as_dyn()), [0.0, 0.0, 1.0]);
    spikes.sum().unwrap().backward().unwrap();
    let gradient = values(x.grad().unwrap().as_dyn());
    for (got, expected) in gradient.into_iter().zip([0.091_999_7, 1.0, 0.288_400_4]) {
        assert!((got - expected).abs() < 1e-6, "{got}, expected {expected}");
    }
}

/// Two outputs: one takes its gradient as it comes, the other in its own dtype.
#[autograd_function(out = (f16, f16), grad = (any, f16))]
struct Split(Seen);

impl Op for Split {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<(Value<f16>, Value<f16>)> {
        Ok((x.cast()?, x.cast()?))
    }

    fn backward(&self, _: &Context, (first, second): (DynTensor, Value<f16>)) -> Result<Value<f32>> {
        self.0.note(&[Some(first.clone()), Some(second.as_dyn().clone())]);
        first.cast(DType::F32)?.typed()
    }
}

#[test]
fn o_65_each_output_decides_about_its_own_gradient() {
    let seen = Seen::default();
    let x = Tensor::<f32>::ones([1]).unwrap().requiring_grad().unwrap();
    for sent in DType::FLOATS {
        let (a, b): (Tensor<f16, AnyGrad>, Tensor<f16>) = Split(seen.clone()).apply(&x).unwrap();
        let seed = of(sent, &[0.1]);
        let roots = [(a.as_dyn(), Some(&seed)), (b.as_dyn(), Some(&seed))];
        gradpact::backward(&roots, options()).unwrap();
        let came = format::round(sent, 0.1);
        assert_eq!(seen.last(0), (sent, vec![came]));
        assert_eq!(seen.last(1), (DType::F16, vec![format::round(DType::F16, came)]));
    }
    assert_eq!(format::round(DType::F16, 0.1), 0.099_975_585_937_5);
}
