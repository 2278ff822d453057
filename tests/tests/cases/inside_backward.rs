//! A2 and A3: dtypes that clash inside backward, and bodies that run in another dtype than asked for.

use std::sync::{Arc, Mutex};

use gradpact::autocast_dtype;
use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{Custom, Seen, grad, leaf, leaf_in, of, options, values};

/// a · b, stored in f16; its backward multiplies the f32 gradient with saved f32 values.
#[autograd_function(out = f16, grad = f32)]
struct Matmul;

impl Op for Matmul {
    type Inputs = (Tensor<f32>, Tensor<f32>);

    fn forward(&self, ctx: &mut Context, (a, b): (Value<f32>, Value<f32>)) -> Result<Value<f16>> {
        ctx.save_for_backward((&a, &b));
        a.matmul(&b)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Value<f32>)> {
        let (a, b): (Value<f32>, Value<f32>) = ctx.saved()?;
        Ok((grad.matmul(&b.transpose(0, 1)?)?, a.transpose(0, 1)?.matmul(&grad)?))
    }
}

#[test]
fn o_06_an_f32_gradient_meets_saved_f32_values_of_an_f16_output() {
    let matrix =
        |values: &[f32]| Tensor::<f32>::from_slice(values, [2, 2]).unwrap().requiring_grad().unwrap();
    let (a, b) = (matrix(&[1.0, 2.0, 3.0, 4.0]), matrix(&[1.0, 0.0, 0.0, 1.0]));
    let y: Tensor<f16, f32> = Matmul.apply((&a, &b)).unwrap();
    y.backward_with(&Tensor::<f32>::ones([2, 2]).unwrap(), options()).unwrap();
    assert_eq!(a.grad().unwrap().to_vec().unwrap(), [1.0; 4]);
    assert_eq!(b.grad().unwrap().to_vec().unwrap(), [4.0, 4.0, 6.0, 6.0]);
}

/// x · w with a bf16 weight, stored in f16. `G` is the gradient dtype.
#[autograd_function(out = f16, grad = G)]
struct Lora<G: Float> {
    saved_as: core::marker::PhantomData<fn() -> G>,
}

impl<G: Float> Op for Lora<G> {
    type Inputs = (Tensor<f16, f32>, Tensor<bf16>);

    fn forward(&self, ctx: &mut Context, (x, w): (Value<f16>, Value<bf16>)) -> Result<Value<f16>> {
        ctx.save_for_backward(&w);
        x.mul(&w.cast()?)
    }

    fn backward(&self, ctx: &Context, grad: Value<G>) -> Result<(Value<f32>, Value<bf16>)> {
        // For G = f16 this asks for a saved tensor of the gradient's dtype, which w is not.
        let w: Value<bf16> = if G::DTYPE == DType::F16 {
            let _: Value<f16> = ctx.saved()?;
            return Err(Error::custom("not reached"));
        } else {
            ctx.saved()?
        };
        let unused = ctx.grad_if_needed(1, || Err(Error::custom("w is a constant")))?;
        Ok((grad.cast::<f32>()?.mul(&w.cast()?)?, unused))
    }
}

#[test]
fn o_08_a_saved_tensor_keeps_its_own_dtype_and_says_so() {
    fn run<G: Float>() -> Result<Value<f32>> {
        let x = Tensor::<f16>::from_slice(&[f16::from_f32(3.0)], [1])?.requiring_grad_in::<f32>()?;
        let w = Tensor::<bf16>::from_slice(&[bf16::from_f32(2.0)], [1])?;
        let y: Tensor<f16, G> = Lora { saved_as: core::marker::PhantomData::<fn() -> G> }.apply((&x, &w))?;
        y.backward_with(&Tensor::<f32>::ones([1])?, options())?;
        Ok(x.grad().unwrap())
    }
    assert_eq!(run::<f32>().unwrap().to_vec().unwrap(), [2.0]);
    let error = run::<f16>().unwrap_err().to_string();
    assert!(error.contains("saved tensor 0 of `Lora`: expected a f16 tensor, got bf16"), "{error}");
}

#[test]
fn o_09_a_gradient_of_another_dtype_than_the_inputs_is_converted_or_refused_with_both_named() {
    for (dtype, returned) in pairs() {
        let x = leaf(dtype, &[1.0]);
        let layer = || {
            let forward = |_: &mut Context, inputs: &Inputs<'_>| Ok(inputs.get(0)?.cast(DType::F64)?.into());
            Custom::new("Layer", forward, move |_, _| Ok(of(returned, &[0.1]).into())).on(&[&x])
        };
        layer().backward_with(&of(DType::F64, &[1.0]), options()).unwrap();
        let expected = format::round(dtype, format::round(returned, 0.1));
        assert_eq!(grad(&x), (dtype, vec![expected]), "{returned} for {dtype}");

        let strict = layer().backward_with(&of(DType::F64, &[1.0]), options().strict());
        if dtype == returned {
            strict.unwrap();
            continue;
        }
        let error = strict.unwrap_err().to_string();
        assert!(error.contains("input 0 of `Layer`"), "{error}");
        assert!(error.contains(&format!("expected {dtype}, got {returned}")), "{error}");
    }
    let x = leaf(DType::F16, &[1.0]);
    x.backward_with(&of(DType::F32, &[0.1]), options()).unwrap();
    assert_eq!(grad(&x), (DType::F16, vec![0.099_975_585_937_5]));
}

/// All pairs of floating dtypes.
fn pairs() -> impl Iterator<Item = (DType, DType)> {
    DType::FLOATS.into_iter().flat_map(|a| DType::FLOATS.into_iter().map(move |b| (a, b)))
}

#[test]
fn o_10_tanh_and_its_gradient_may_have_any_two_dtypes() {
    for (x_dtype, g_dtype) in pairs() {
        let x = leaf(x_dtype, &[0.5; 40]);
        x.tanh().unwrap().backward_with(&of(g_dtype, &[1.0; 40]), options()).unwrap();
        let (dtype, values) = grad(&x);
        assert_eq!(dtype, x_dtype);
        // Two fraction bits are all that e5m2 has; the report's dtypes are held to one in a hundred.
        let tolerance = if x_dtype.size_in_bytes() == 1 { 0.13 } else { 0.01 };
        for value in values {
            assert!((value / 0.786_447_7 - 1.0).abs() < tolerance, "{x_dtype}, {g_dtype}: {value}");
        }
    }
}

/// (x − y)², each in its own dtype.
#[autograd_function(out = f64)]
struct SquaredError;

impl Op for SquaredError {
    type Inputs = (Tensor<f32>, Tensor<f64>);

    fn forward(&self, ctx: &mut Context, (x, y): (Value<f32>, Value<f64>)) -> Result<Value<f64>> {
        ctx.save_for_backward((&x, &y));
        let difference = x.cast()?.sub(&y)?;
        difference.mul(&difference)
    }

    fn backward(&self, ctx: &Context, grad: Value<f64>) -> Result<(Value<f32>, Value<f64>)> {
        let (x, y): (Value<f32>, Value<f64>) = ctx.saved()?;
        let dx = x.cast()?.sub(&y)?.mul_scalar(2.0)?.mul(&grad)?;
        Ok((dx.cast()?, dx.neg()?))
    }
}

#[test]
fn o_11_every_input_gets_its_gradient_in_its_own_dtype() {
    let x = Tensor::<f32>::scalar(1.0).requiring_grad().unwrap();
    let y = Tensor::<f64>::scalar(3.0).requiring_grad().unwrap();
    let error = SquaredError.apply((&x, &y)).unwrap();
    assert_eq!(error.item().unwrap(), 4.0);
    error.backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec().unwrap(), [-4.0_f32]);
    assert_eq!(y.grad().unwrap().to_vec().unwrap(), [4.0_f64]);

    for (a, b) in pairs() {
        let (x, y) = (leaf(a, &[1.0]), leaf(b, &[3.0]));
        let difference = x.sub(&y).unwrap();
        difference.mul(&difference).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(grad(&x), (a, vec![-4.0]), "{a} with {b}");
        assert_eq!(grad(&y), (b, vec![4.0]), "{a} with {b}");
    }
}

#[test]
fn o_12_a_constant_takes_the_dtype_of_what_it_meets() {
    let activation = |x: &DynTensor| {
        let up = x.relu().unwrap().mul_scalar(2.0).unwrap();
        up.sub(&x.neg().unwrap().relu().unwrap().mul_scalar(0.9).unwrap()).unwrap()
    };
    for gradient in DType::FLOATS {
        let x = leaf_in(DType::F16, gradient, &[1.0, -1.0]);
        let y = activation(&x);
        assert_eq!((y.dtype(), values(&y)), (DType::F16, vec![2.0, -0.899_902_343_75]));
        y.sum().unwrap().backward().unwrap();
        // The gradient is formed in the wider of f16 and what the leaf asks for, and rounded to that.
        let formed = format::round(format::meeting(DType::F16, gradient), 0.9);
        assert_eq!(grad(&x), (gradient, vec![2.0, format::round(gradient, formed)]));
    }
}

#[test]
fn o_13_a_gradient_carried_through_a_loop_is_not_rounded_to_the_values_dtype() {
    let seen = Seen::default();
    let step = || {
        let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
            ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
            Ok(inputs.get(0)?.mul_scalar(1.5)?.into())
        };
        let seen = seen.clone();
        Custom::new("Step", forward, move |_, grads| {
            seen.note(&grads);
            Ok(grads[0].as_ref().unwrap().mul_scalar(1.5)?.into())
        })
    };
    let start = leaf_in(DType::BF16, DType::F32, &[1.0]);
    let end = (0..4).fold(start.clone(), |y, _| step().on(&[&y]));
    end.backward_with(&of(DType::F32, &[1.000_976_562_5]), options()).unwrap();
    assert_eq!(grad(&start), (DType::F32, vec![5.067_443_847_656_25]));
    assert_eq!(seen.count(), 4);
}

/// 300 · 300 in the dtype that the region asks for, in forward and in backward; which that was is noted.
fn in_the_region(noted: &Arc<Mutex<Vec<DType>>>) -> Custom {
    let (forward, backward) = (Arc::clone(noted), Arc::clone(noted));
    let product = |noted: &Mutex<Vec<DType>>| {
        let dtype = autocast_dtype().unwrap_or(DType::F32);
        noted.lock().unwrap().push(dtype);
        let factor = of(DType::F32, &[300.0]).reshape([1, 1])?;
        let product = factor.matmul(&factor)?;
        assert_eq!(product.dtype(), dtype);
        product.reshape([1])?.cast(DType::F32)
    };
    let run = move |_: &mut Context, _: &Inputs<'_>| Ok(product(&forward)?.into());
    Custom::new("Region", run, move |_, _| Ok(product(&backward)?.into()))
}

#[test]
fn o_14_backward_runs_in_the_region_of_its_forward() {
    let regions = [None, Some(DType::F16), Some(DType::BF16), Some(DType::F32)];
    // 90 000 is 90 112 in bf16 and overflows f16.
    let product = |region: Option<DType>| format::round(region.unwrap_or(DType::F32), 90_000.0);
    for region in regions {
        for caller in regions {
            let noted = Arc::default();
            let x = leaf(DType::F32, &[1.0]);
            let y = autocast(region, || in_the_region(&noted).on(&[&x])).unwrap();
            autocast(caller, || y.backward()).unwrap().unwrap();
            let dtype = region.unwrap_or(DType::F32);
            assert_eq!(*noted.lock().unwrap(), [dtype; 2], "called from {caller:?}");
            assert_eq!(values(&y), [product(region)]);
            assert_eq!(grad(&x), (DType::F32, vec![product(region)]), "called from {caller:?}");
        }
    }
    assert_eq!((product(Some(DType::BF16)), product(Some(DType::F16))), (90_112.0, f64::INFINITY));
}

/// `a · b` as matrices, all in f32 by declaration.
#[autograd_function(out = f32, grad = f32)]
struct Declared;

impl Op for Declared {
    type Inputs = (Tensor<f32>, Tensor<f32>);

    fn forward(&self, ctx: &mut Context, (a, b): (Value<f32>, Value<f32>)) -> Result<Value<f32>> {
        ctx.save_for_backward((&a, &b));
        a.matmul(&b)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Value<f32>)> {
        let (a, b): (Value<f32>, Value<f32>) = ctx.saved()?;
        Ok((grad.matmul(&b)?, a.matmul(&grad)?))
    }
}

#[test]
fn o_15_a_declaration_wins_over_the_region_in_forward_and_backward() {
    // 1.0078125² has 15 significant bits: bf16 would round it, f16 too.
    let (factor, square) = (1.007_812_5, 1.015_686_035_156_25);
    let regions = [None, Some(DType::BF16), Some(DType::F16)];
    for region in regions {
        for caller in regions {
            let [a, b] =
                [0; 2].map(|_| Tensor::<f32>::full([1, 1], factor).unwrap().requiring_grad().unwrap());
            let y = autocast(region, || Declared.apply((&a, &b))).unwrap().unwrap();
            assert_eq!(values(y.as_dyn()), [square]);
            let seed = Tensor::<f32>::full([1, 1], factor).unwrap();
            autocast(caller, || y.backward_with(&seed, options())).unwrap().unwrap();
            assert_eq!(grad(a.as_dyn()), (DType::F32, vec![square]));
            assert_eq!(grad(b.as_dyn()), (DType::F32, vec![square]));
        }
    }
}

#[test]
fn o_16_the_region_that_backward_is_called_from_changes_no_bit() {
    let regions = [None, Some(DType::F16), Some(DType::BF16), Some(DType::F64)];
    for forward in regions {
        let gradients = regions.map(|caller| {
            let x = of(DType::F32, &[0.1, 300.0, -7.7, 1e-3]).reshape([2, 2]).unwrap();
            let (x, w) = (x.requiring_grad().unwrap(), x.exp().unwrap().requiring_grad().unwrap());
            // A built-in product, a Function that forms one, and a typed one.
            let loss = autocast(forward, || {
                let y = x.matmul(&w).unwrap().cast(DType::F32).unwrap();
                apply(Declared, &[&y, &x]).unwrap()[0].matmul(&w).unwrap().sum_in(DType::F32).unwrap()
            });
            let loss = loss.unwrap();
            autocast(caller, || loss.backward()).unwrap().unwrap();
            [x, w].map(|leaf| {
                leaf.grad().unwrap().to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
            })
        });
        let [first, others @ ..]: [[Vec<u32>; 2]; 4] = gradients;
        assert!(others.iter().all(|other| *other == first), "{forward:?}");
    }
}

/// Notes what it sees, and stores it in f16.
#[autograd_function(out = f16)]
struct Looks(Seen);

impl Op for Looks {
    type Inputs = Tensor<f64>;

    fn forward(&self, _: &mut Context, x: Value<f64>) -> Result<Value<f16>> {
        self.0.note_one(&x);
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f64>> {
        grad.cast()
    }
}

#[test]
fn o_17_the_body_sees_its_input_as_it_was_given() {
    let seen = Seen::default();
    let x = Tensor::<f64>::scalar(0.1).requiring_grad().unwrap();
    let y = Looks(seen.clone()).apply(&x).unwrap();
    assert_eq!(seen.last(0), (DType::F64, vec![0.1]));
    assert_eq!(values(y.as_dyn()), [format::round(DType::F16, 0.1)]);
}
