//! A1: an incoming gradient silently rounded to the output's storage dtype.

use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{Custom, FLOATS, Seen, grad, leaf, leaf_in, of, options, scalar, send, values};

/// An odd integer just too long for the dtype, and what it rounds to.
const TOO_LONG: [(DType, f64, f64); 4] = [
    (DType::F8E4M3, 17.0, 16.0),
    (DType::F8E5M2, 9.0, 8.0),
    (DType::F16, 2049.0, 2048.0),
    (DType::BF16, 257.0, 256.0),
];

#[test]
fn o_01_a_wrapper_that_declares_its_gradient_dtype_does_not_round_what_passes_through() {
    for (storage, value, rounded) in TOO_LONG {
        for declared in [Some(GradDType::Exactly(DType::F32)), Some(GradDType::Any), None] {
            let x = leaf_in(storage, DType::F32, &[1.0]);
            let wrapped = Custom::store("ToLocal", storage, declared, &Seen::default()).on(&[&x]);
            send(&[(&wrapped, &of(DType::F32, &[value]))], options()).unwrap();
            let expected = if declared.is_some() { value } else { rounded };
            assert_eq!(grad(&x), (DType::F32, vec![expected]), "{storage}, declared {declared:?}");
        }
    }
}

/// x², stored in `D`, gradient in `G`.
#[autograd_function(out = D, grad = G)]
struct Square<D: Float, G: Float>(core::marker::PhantomData<fn() -> (D, G)>);

impl<D: Float, G: Float> Op for Square<D, G> {
    type Inputs = Tensor<D, G>;

    fn forward(&self, ctx: &mut Context, x: Value<D>) -> Result<Value<D>> {
        ctx.save_for_backward(&x);
        x.mul(&x)
    }

    fn backward(&self, ctx: &Context, grad: Value<G>) -> Result<Value<G>> {
        let x: Value<D> = ctx.saved()?;
        let x = x.cast::<G>()?;
        x.add(&x)?.mul(&grad)
    }
}

fn gradient_of_square<D: Float, G: Float>(x: f64, seed: f64) -> f64 {
    let x = Tensor::<D>::from_slice(&[D::from_f64(x)], [1]).unwrap().requiring_grad_in::<G>().unwrap();
    let y: Tensor<D, G> = Square(core::marker::PhantomData).apply(&x).unwrap();
    y.as_dyn().backward_with(&of(DType::F32, &[seed]), options()).unwrap();
    let grad: Value<G> = x.grad().unwrap();
    grad.to_vec().unwrap()[0].to_f64()
}

macro_rules! for_all_pairs {
    ($check:ident: $($storage:ident)*) => {$(
        $check::<$storage, f8e4m3>(); $check::<$storage, f8e5m2>(); $check::<$storage, f16>();
        $check::<$storage, bf16>(); $check::<$storage, f32>(); $check::<$storage, f64>();
    )*};
}

#[test]
fn o_02_an_f16_activation_can_have_an_f32_gradient() {
    assert_eq!(gradient_of_square::<f16, f32>(2_f64.powi(-10), 2_f64.powi(-16)), 2_f64.powi(-25));
    assert_eq!(gradient_of_square::<f16, f32>(1.0, 1.0), 2.0);
    assert_eq!(gradient_of_square::<f16, f16>(2_f64.powi(-10), 2_f64.powi(-16)), 0.0, "if every hop is f16");
}

#[test]
fn o_02_every_storage_dtype_goes_with_every_gradient_dtype() {
    fn check<D: Float, G: Float>() {
        // At 1/4 everything is exact in every dtype.
        assert_eq!(gradient_of_square::<D, G>(0.25, 0.5), 0.25, "{} with {}", D::DTYPE, G::DTYPE);
        // And where the gradient is tiny, only its own dtype counts.
        let expected =
            format::round(G::DTYPE, 2.0 * 2_f64.powi(-5) * format::round(G::DTYPE, 2_f64.powi(-20)));
        let got = gradient_of_square::<D, G>(2_f64.powi(-5), 2_f64.powi(-20));
        assert_eq!(got, expected, "{} with {}", D::DTYPE, G::DTYPE);
    }
    for_all_pairs!(check: f8e4m3 f8e5m2 f16 bf16 f32 f64);
}

#[test]
fn o_03_a_large_gradient_does_not_overflow_on_the_way_to_a_narrow_output() {
    for (storage, value) in [(DType::F16, 120_000.0), (DType::F8E5M2, 120_000.0), (DType::BF16, 1e39)] {
        let sent = of(DType::F64, &[value]);
        let run = |declared, options| {
            let (seen, x) = (Seen::default(), leaf(DType::F32, &[300.0]));
            let prediction = Custom::store("Prediction", storage, declared, &seen).on(&[&x]);
            (send(&[(&prediction, &sent)], options), seen)
        };
        let (result, seen) = run(Some(GradDType::Exactly(DType::F64)), options());
        result.unwrap();
        assert_eq!(seen.last(0), (DType::F64, vec![value]));
        let (result, seen) = run(None, options());
        result.unwrap();
        assert_eq!(seen.last(0), (storage, vec![f64::INFINITY]));
        let (result, seen) = run(None, options().strict());
        let error = result.unwrap_err().to_string();
        assert!(error.contains("input 0 of `Loss`") && error.contains("output 0 of `Prediction`"), "{error}");
        assert!(error.contains(&format!("expected {storage}, got f64")), "{error}");
        assert_eq!(seen.count(), 0, "the error comes before backward runs");
    }
}

#[test]
fn o_04_gradients_are_added_in_the_leafs_gradient_dtype() {
    for (storage, step) in
        [(DType::BF16, 1.003_906_25), (DType::F16, 1.000_488_281_25), (DType::F8E4M3, 1.0625)]
    {
        let add_twice = |x: &DynTensor| {
            for _ in 0..2 {
                let y = x.mul(&of(storage, &[1.0])).unwrap();
                send(&[(&y, &of(DType::F32, &[step]))], options()).unwrap();
            }
            grad(x)
        };
        assert_eq!(add_twice(&leaf_in(storage, DType::F32, &[1.0])), (DType::F32, vec![2.0 * step]));
        assert_eq!(add_twice(&leaf(storage, &[1.0])), (storage, vec![2.0]));
    }
}

/// x · w for a constant x, stored in bf16: the gradient of w is formed in f32.
#[autograd_function(out = bf16, grad = f32)]
struct Linear;

impl Op for Linear {
    type Inputs = (Tensor<bf16>, Tensor<bf16, f32>);

    fn forward(&self, ctx: &mut Context, (x, w): (Value<bf16>, Value<bf16>)) -> Result<Value<bf16>> {
        ctx.save_for_backward(&x);
        x.matmul(&w)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<bf16>, Value<f32>)> {
        let x: Value<bf16> = ctx.saved()?;
        let dw = x.transpose(0, 1)?.cast::<f32>()?.matmul(&grad)?;
        Ok((ctx.grad_if_needed(0, || Err(Error::custom("x is a constant")))?, dw))
    }
}

#[test]
fn o_05_a_weight_gradient_is_formed_wide_not_widened_after_rounding() {
    let x = Tensor::<bf16>::from_slice(&[bf16::from_f32(256.0), bf16::from_f32(1.0)], [2, 1]).unwrap();
    let w = Tensor::<bf16>::ones([1, 1]).unwrap().requiring_grad_in::<f32>().unwrap();
    let y = Linear.apply((&x, &w)).unwrap();
    y.backward_with(&Tensor::<bf16>::ones([2, 1]).unwrap(), options()).unwrap();
    assert_eq!(w.grad().unwrap().to_vec().unwrap(), [257.0]);

    // The built-in operation gives the same, for a leaf that asks for it.
    let w = w.requiring_grad_in::<f32>().unwrap();
    x.matmul(&w).unwrap().backward_with(&Tensor::<bf16>::ones([2, 1]).unwrap(), options()).unwrap();
    assert_eq!(w.grad().unwrap().to_vec().unwrap(), [257.0]);
}

#[test]
fn the_values_of_these_cases_are_what_exact_arithmetic_says() {
    for (dtype, value, rounded) in TOO_LONG {
        assert_eq!(format::round(dtype, value), rounded);
    }
    for dtype in FLOATS {
        assert_eq!(values(&scalar(dtype, 0.1)), [format::round(dtype, 0.1)]);
    }
}
