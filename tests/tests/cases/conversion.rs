//! A8: range and rounding of the conversion itself.

use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{Custom, FLOATS, Seen, grad, leaf, leaf_in, of, options, scalar, values};

#[test]
fn o_39_a_chain_of_small_factors_underflows_only_where_it_was_declared_narrow() {
    let factor = format::round(DType::F16, 0.01);
    assert_eq!(factor, 0.010_002_136_230_468_75);
    let run = |gradient: DType| {
        let seen = Seen::default();
        let hop = || {
            let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
                ctx.set_output_grad_dtype(&[GradDType::Exactly(gradient)])?;
                Ok(inputs.get(0)?.mul_scalar(0.01)?.into())
            };
            let seen = seen.clone();
            let backward = move |_: &Context, grads: Gradients| {
                seen.note(&grads);
                Ok(grads[0].as_ref().unwrap().mul(&of(DType::F16, &[0.01]))?.into())
            };
            Custom::new("Hop", forward, backward)
        };
        let x = leaf_in(DType::F16, gradient, &[1.0]);
        let mut y = x.clone();
        for _ in 0..4 {
            y = hop().on(&[&y]);
        }
        y.backward_with(&of(DType::F32, &[1.0]), options()).unwrap();
        assert_eq!(seen.last(0).0, gradient);
        grad(&x)
    };
    let product = |dtype| (0..4).fold(1.0, |grad, _| format::round(dtype, grad * factor));
    assert_eq!(run(DType::F16), (DType::F16, vec![0.0]));
    assert_eq!(run(DType::F32), (DType::F32, vec![product(DType::F32)]));
    assert_eq!(run(DType::F64), (DType::F64, vec![factor.powi(4)]));
    assert_eq!(product(DType::F16), 0.0);
    assert!((product(DType::F32) / 1.000_85e-8 - 1.0).abs() < 1e-5);
}

/// The Euclidean norm, stored in f16, computed in f32 throughout.
#[autograd_function(out = f16, grad = f32)]
struct Norm;

impl Op for Norm {
    type Inputs = Tensor<f16, f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f16>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        let x = x.cast::<f32>()?;
        x.mul(&x)?.sum()?.sqrt()?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x = ctx.saved::<Value<f16>>()?.cast::<f32>()?;
        let norm = x.mul(&x)?.sum()?.sqrt()?;
        x.div(&norm)?.mul(&grad)
    }
}

#[test]
fn o_40_a_norm_that_narrows_last_has_a_finite_value_and_a_gradient() {
    let x = Tensor::<f16>::from_slice(&[f16::from_f32(100.0); 9], [9]).unwrap();
    let x = x.requiring_grad_in::<f32>().unwrap();
    let norm = Norm.apply(&x).unwrap();
    assert_eq!(norm.item().unwrap(), f16::from_f32(300.0));
    norm.backward().unwrap();
    let third = format::round(DType::F32, 1.0 / 3.0) as f32;
    assert_eq!(x.grad().unwrap().to_vec().unwrap(), [third; 9]);
}

#[test]
fn o_41_conversions_round_to_nearest_even_and_keep_subnormals() {
    let tiny = 2_f64.powi(-24);
    let cases = [
        (DType::F16, 65519.0, 65504.0),
        (DType::F16, 65520.0, f64::INFINITY),
        (DType::F16, tiny, tiny),
        (DType::F16, 2_f64.powi(-25), 0.0),
        (DType::F16, 2_f64.powi(-25) * (1.0 + 2_f64.powi(-10)), tiny),
        (DType::F16, 255.99, 256.0),
        (DType::F16, 2049.0, 2048.0),
        (DType::F16, 2051.0, 2052.0),
        (DType::BF16, 0.269_140_877_029_227_2, 0.269_531_25),
        (DType::BF16, 257.0, 256.0),
    ];
    for (dtype, value, expected) in cases {
        for from in [DType::F32, DType::F64] {
            for sign in [1.0, -1.0] {
                // One element, and enough of them for every path that a kernel may have.
                for count in [1, 7, 1000] {
                    let cast = of(from, &vec![sign * value; count]).cast(dtype).unwrap();
                    let expected = format::stored_bits(DType::F64, sign * expected);
                    assert!(values(&cast).iter().all(|v| v.to_bits() == expected), "{value} {from}→{dtype}");
                }
            }
        }
    }
}

#[test]
fn o_41_every_conversion_between_floats_is_the_exact_one() {
    // All bit patterns of 16 bits, as f16 and as bf16, and around each halfway point of the narrow dtypes in f64.
    let mut samples: Vec<f64> = (0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f64()).collect();
    samples.extend((0..=u16::MAX).map(|bits| bf16::from_bits(bits).to_f64()));
    let half_steps: Vec<f64> = samples.iter().map(|v| v * (1.0 + 2_f64.powi(-11))).collect();
    samples.extend(half_steps.iter().flat_map(|&v| [v, v.next_up(), v.next_down()]));
    samples.retain(|v| !v.is_nan());
    for from in FLOATS {
        let source = of(DType::F64, &samples).cast(from).unwrap();
        let exact_source: Vec<f64> = samples.iter().map(|&v| format::round(from, v)).collect();
        assert!(same_bits(&values(&source), &exact_source), "f64 to {from}");
        for to in FLOATS {
            let exact: Vec<f64> = exact_source.iter().map(|&v| format::round(to, v)).collect();
            assert!(same_bits(&values(&source.cast(to).unwrap()), &exact), "{from} to {to}");
        }
    }
}

fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

#[test]
fn o_41_admission_uses_the_same_conversion() {
    for to in FLOATS {
        for value in [65519.0, 65520.0, 2_f64.powi(-25), 255.99, 257.0, 0.269_140_877_029_227_2] {
            let (seen, x) = (Seen::default(), leaf(DType::F32, &[1.0]));
            let y = Custom::store("Layer", DType::F32, Some(GradDType::Exactly(to)), &seen).on(&[&x]);
            y.sum().unwrap().mul(&scalar(DType::F64, value)).unwrap().backward().unwrap();
            // The factor is f64, so is the gradient; the sum's edge asks for f32 or wider.
            let carried = format::round(format::meeting(DType::F32, to), value);
            assert_eq!(seen.last(0), (to, vec![format::round(to, carried)]), "{value}");
        }
    }
}
