//! A4: gradients returned, stored or viewed in the wrong dtype for their input.

use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{Custom, FLOATS, Seen, grad, leaf, leaf_in, of, options, send, values};

/// x², saved as it came.
#[autograd_function(out = f32)]
struct Half;

impl Op for Half {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        ctx.save_for_backward(&x);
        x.mul(&x)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul(&ctx.saved::<Value<f32>>()?)
    }
}

#[test]
fn o_18_an_f32_input_gets_an_f32_gradient_whatever_was_saved() {
    let x = Tensor::<f32>::from_slice(&[1.007_812_5], [1]).unwrap().requiring_grad().unwrap();
    let seed = Tensor::<f32>::from_slice(&[1.007_812_5], [1]).unwrap();
    Half.apply(&x).unwrap().backward_with(&seed, options()).unwrap();
    assert_eq!(values(x.grad().unwrap().as_dyn()), [1.015_686_035_156_25]);

    // By hand, through the dynamic layer: saved and returned in bf16.
    let x = leaf(DType::F32, &[1.007_812_5]);
    let by_hand = || {
        let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
            ctx.save_for_backward(&inputs.get(0)?.cast(DType::BF16)?.detach());
            Ok(inputs.get(0)?.mul(inputs.get(0)?)?.into())
        };
        let backward = |ctx: &Context, grads: Gradients| {
            Ok(grads[0].as_ref().unwrap().cast(DType::BF16)?.mul(ctx.saved_tensor(0)?)?.into())
        };
        Custom::new("ByHand", forward, backward).on(&[&x])
    };
    by_hand().backward_with(seed.as_dyn(), options()).unwrap();
    assert_eq!(grad(&x), (DType::F32, vec![1.015_625]), "stored in f32 all the same");
    let error = by_hand().backward_with(seed.as_dyn(), options().strict()).unwrap_err().to_string();
    assert!(error.contains("input 0 of `ByHand`") && error.contains("expected f32, got bf16"), "{error}");
}

#[test]
fn o_19_a_gradient_of_another_dtype_is_never_stored() {
    for dtype in FLOATS {
        for constant in FLOATS {
            let x = leaf(dtype, &[1.0]);
            let times = move |_: &Context, grads: Gradients| {
                Ok(grads[0].as_ref().unwrap().mul(&of(constant, &[0.1]))?.into())
            };
            let forward = |_: &mut Context, inputs: &Inputs<'_>| Ok(inputs.get(0)?.clone().into());
            let y = Custom::new("Times", forward, times).on(&[&x]);
            y.backward_with(&of(dtype, &[1.0]), options()).unwrap();
            let expected = format::round(dtype, format::round(constant, 0.1));
            assert_eq!(grad(&x), (dtype, vec![expected]), "{constant} for {dtype}");
        }
    }
    let x = leaf(DType::F32, &[1.0]);
    x.mul(&of(DType::F64, &[0.1])).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(grad(&x), (DType::F32, vec![0.100_000_001_490_116_12]));
}

/// A matrix times a scalar of a wider dtype.
#[autograd_function(out = f32)]
struct Scale;

impl Op for Scale {
    type Inputs = (Tensor<f32>, Tensor<f64>);

    fn forward(&self, ctx: &mut Context, (x, s): (Value<f32>, Value<f64>)) -> Result<Value<f32>> {
        ctx.save_for_backward((&x, &s));
        x.cast::<f64>()?.mul(&s)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Value<f64>)> {
        let (x, s): (Value<f32>, Value<f64>) = ctx.saved()?;
        Ok((grad.mul(&s.cast()?)?, grad.mul(&x)?.sum_in::<f64>()?))
    }
}

#[test]
fn o_20_inputs_of_two_dtypes_get_gradients_of_two_dtypes() {
    let x = Tensor::<f32>::ones([3, 3]).unwrap().requiring_grad().unwrap();
    let s = Tensor::<f64>::scalar(2.0).requiring_grad().unwrap();
    let y = Scale.apply((&x, &s)).unwrap();
    y.backward_with(&Tensor::<f32>::ones([3, 3]).unwrap(), options()).unwrap();
    assert_eq!(x.grad().unwrap().to_vec().unwrap(), [2.0_f32; 9]);
    assert_eq!(s.grad().unwrap().to_vec().unwrap(), [9.0_f64]);

    // The built-in product, which broadcasts, in every pair of dtypes.
    for a in FLOATS {
        for b in FLOATS {
            let (x, s) = (leaf(a, &[1.0; 9]), leaf(b, &[2.0]));
            x.mul(&s).unwrap().sum().unwrap().backward().unwrap();
            assert_eq!(grad(&x), (a, vec![2.0; 9]), "{a} with {b}");
            assert_eq!(grad(&s), (b, vec![format::round(b, 9.0)]), "{a} with {b}");
        }
    }
}

#[test]
fn o_21_zeros_for_a_gradient_have_the_gradient_dtype() {
    for storage in FLOATS {
        for gradient in FLOATS {
            let x = leaf_in(storage, gradient, &[1.0, 2.0]);
            let other = leaf(DType::F32, &[1.0]).sum().unwrap();
            let zeros = gradpact::grad(&[(&other, None)], &[&x], options().materialize_grads()).unwrap();
            let zeros = zeros[0].as_ref().unwrap();
            assert_eq!((zeros.dtype(), values(zeros)), (gradient, vec![0.0, 0.0]), "{storage}");
        }
    }
    // By hand the dtype must be the leaf's.
    for gradient in FLOATS {
        let x = leaf_in(DType::F32, gradient, &[1.0, 2.0]);
        for dtype in FLOATS {
            let assigned = x.set_grad(Some(&of(dtype, &[0.0, 0.0])));
            if dtype == gradient {
                assigned.unwrap();
                assert_eq!(grad(&x), (gradient, vec![0.0, 0.0]));
                continue;
            }
            let error = assigned.unwrap_err().to_string();
            assert!(error.contains(&format!("expected {gradient}, got {dtype}")), "{error}");
        }
    }
}

#[test]
fn o_22_a_view_of_a_gradient_has_the_gradients_dtype_and_length() {
    let x = leaf_in(DType::BF16, DType::F32, &[1.0, 1.0]);
    send(&[(&x, &of(DType::F32, &[1.003_906_25, 257.0]))], options()).unwrap();
    let gradient = x.grad().unwrap();
    for view in [gradient.clone(), gradient.reshape([2]).unwrap(), gradient.narrow(0, 0, 2).unwrap()] {
        assert_eq!((view.dtype(), &view.shape()[..]), (DType::F32, &[2_usize][..]));
        assert_eq!(view.to_vec::<f32>().unwrap(), [1.0 + 1.0 / 256.0, 257.0]);
        assert!(view.to_vec::<bf16>().is_err(), "f32 elements are not read as bf16");
    }
}

#[test]
fn o_23_an_integer_factor_leaves_a_floating_gradient() {
    let integers = [DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];
    for dtype in FLOATS {
        for integer in integers {
            let factor = if integer == DType::Bool { 1.0 } else { 3.0 };
            for gradient in FLOATS {
                let x = leaf_in(dtype, gradient, &[2.0]);
                let y = x.mul(&of(integer, &[factor])).unwrap();
                assert_eq!((y.dtype(), values(&y)), (dtype, vec![2.0 * factor]), "{dtype} with {integer}");
                y.sum().unwrap().backward().unwrap();
                assert_eq!(grad(&x), (gradient, vec![factor]), "{dtype} with {integer}");
            }
        }
    }
}

#[test]
fn o_25_a_gradient_may_be_declared_narrower_than_the_storage() {
    for storage in FLOATS {
        for declared in FLOATS {
            let seen = Seen::default();
            let x = of(DType::F64, &[1.0]).requiring_grad_in(GradDType::Any).unwrap();
            let y = Custom::store("Compressed", storage, Some(GradDType::Exactly(declared)), &seen).on(&[&x]);
            // Declared narrowing is not silent: the strict policy has nothing against it.
            y.backward_with(&of(DType::F32, &[0.1]), options().strict()).unwrap();
            let expected = format::round(declared, format::round(DType::F32, 0.1));
            assert_eq!(seen.last(0), (declared, vec![expected]), "{storage}");
            assert_eq!(grad(&x), (declared, vec![expected]));
        }
    }
    assert_eq!(format::round(DType::BF16, 0.1), 0.100_097_656_25);
}
