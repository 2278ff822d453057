//! A10: number, order, presence and shape of gradients.

use gradpact::prelude::*;

use crate::support::{Custom, grad, leaf, of, options, scalar};

/// The sum of five inputs, whose backward knows three gradients.
#[autograd_function(out = f32)]
struct Five;

impl Op for Five {
    type Inputs = (Tensor<f32>, Option<Tensor<f32>>, Option<Tensor<f32>>, Tensor<f32>, Tensor<f32>);

    fn forward(
        &self,
        _: &mut Context,
        (a, _, _, d, e): (Value<f32>, Option<Value<f32>>, Option<Value<f32>>, Value<f32>, Value<f32>),
    ) -> Result<Value<f32>> {
        a.add(&d)?.add(&e)
    }

    fn backward(
        &self,
        _: &Context,
        grad: Value<f32>,
    ) -> Result<(Value<f32>, Option<Value<f32>>, Option<Value<f32>>, Value<f32>, Value<f32>)> {
        Ok((grad.mul_scalar(10.0)?, None, None, grad.mul_scalar(30.0)?, grad.mul_scalar(40.0)?))
    }
}

#[test]
fn o_47_gradients_stay_in_their_positions() {
    let leaves = [0; 5].map(|_| Tensor::<f32>::scalar(1.0).requiring_grad().unwrap());
    let [a, b, c, d, e] = &leaves;
    Five.apply((a, Some(b), Some(c), d, e)).unwrap().backward().unwrap();
    let got = leaves.each_ref().map(|leaf| leaf.grad().map(|grad| grad.item().unwrap()));
    assert_eq!(got, [Some(10.0), None, None, Some(30.0), Some(40.0)]);

    // Every pattern of presence, through the dynamic layer.
    for present in 0..32_usize {
        let leaves = [0; 5].map(|_| leaf(DType::F32, &[1.0]));
        let has = move |i: usize| present >> i & 1 == 1;
        let grads = (0..5).map(|i| has(i).then(|| of(DType::F32, &[10.0 * i as f64]))).collect();
        Custom::giving("Five", grads).on(&leaves.each_ref()).backward().unwrap();
        for (i, leaf) in leaves.iter().enumerate() {
            let expected = has(i).then(|| (DType::F32, vec![10.0 * i as f64]));
            assert_eq!(leaf.grad().map(|_| grad(leaf)), expected, "{present:05b}, {i}");
        }
    }
}

#[test]
fn o_48_a_gradient_of_another_shape_is_an_error_with_both_shapes() {
    let shapes: [&[usize]; 10] =
        [&[], &[1], &[3], &[4], &[1, 3], &[3, 1], &[4, 3], &[4, 4, 4], &[0], &[2, 4, 3]];
    for input in shapes {
        for returned in shapes {
            let x = DynTensor::full(input, 1.0, DType::F32).unwrap().requiring_grad().unwrap();
            let wrong = DynTensor::full(returned, 1.0, DType::F32).unwrap();
            let result = Custom::giving("Layer", vec![Some(wrong)]).on(&[&x]).backward();
            if input == returned {
                result.unwrap();
                continue;
            }
            let error = result.unwrap_err().to_string();
            assert!(error.contains("input 0 of `Layer` has the wrong shape"), "{error}");
            assert!(error.contains(&format!("expected {input:?}, got {returned:?}")), "{error}");
            assert!(error.contains("sum_to_shape"), "{error}");
            assert!(x.grad().is_none());
        }
    }
    // Written out, the sum is there to be had.
    let x = leaf(DType::F32, &[1.0, 2.0, 3.0]);
    let forward = |_: &mut Context, _: &Inputs<'_>| Ok(scalar(DType::F32, 0.0).into());
    let backward = |_: &Context, _: Gradients| {
        Ok(DynTensor::full([4, 3], 1.0, DType::F32)?.sum_to_shape(&Shape::from([3]))?.into())
    };
    Custom::new("Layer", forward, backward).on(&[&x]).backward().unwrap();
    assert_eq!(grad(&x), (DType::F32, vec![4.0; 3]));
}

/// One type for each index.
macro_rules! each {
    ($index:tt $type:ty) => {
        $type
    };
}

/// Declares Functions of so many inputs that multiply them all.
macro_rules! products {
    ($($name:ident [$($index:tt)+])+) => {$(
        #[autograd_function(out = f32)]
        struct $name;

        impl Op for $name {
            type Inputs = ($(each!($index Tensor<f32>),)+);

            fn forward(
                &self,
                ctx: &mut Context,
                inputs: ($(each!($index Value<f32>),)+),
            ) -> Result<Value<f32>> {
                ctx.save_for_backward(($(&inputs.$index,)+));
                let mut product = Tensor::<f32>::scalar(1.0).value();
                $(product = product.mul(&inputs.$index)?;)+
                Ok(product)
            }

            fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<($(each!($index Value<f32>),)+)> {
                let saved: ($(each!($index Value<f32>),)+) = ctx.saved()?;
                let mut product = grad;
                $(product = product.mul(&saved.$index)?;)+
                Ok(($(product.div(&saved.$index)?,)+))
            }
        }

        impl $name {
            fn check() {
                let leaves = [$(f64::from($index) + 2.0),+];
                let leaves = leaves.map(|value| Tensor::<f32>::scalar(value).requiring_grad().unwrap());
                let product: f32 = leaves.iter().map(|leaf| leaf.item().unwrap()).product();
                let y = $name.apply(($(&leaves[$index],)+)).unwrap();
                assert_eq!(y.item().unwrap(), product);
                y.backward().unwrap();
                for leaf in &leaves {
                    assert_eq!(leaf.grad().unwrap().item().unwrap(), product / leaf.item().unwrap());
                }
            }
        }
    )+};
}

products! {
    Of1 [0] Of2 [0 1] Of3 [0 1 2] Of4 [0 1 2 3] Of5 [0 1 2 3 4] Of6 [0 1 2 3 4 5] Of7 [0 1 2 3 4 5 6]
    Of8 [0 1 2 3 4 5 6 7]
}

#[test]
fn o_49_a_function_may_have_any_number_of_inputs() {
    Of1::check();
    Of2::check();
    Of3::check();
    Of4::check();
    Of5::check();
    Of6::check();
    Of7::check();
    Of8::check();
    // 2 · 3 · 4, as in the report.
    let leaves = [2.0, 3.0, 4.0].map(|value| Tensor::<f32>::scalar(value).requiring_grad().unwrap());
    Of3.apply((&leaves[0], &leaves[1], &leaves[2])).unwrap().backward().unwrap();
    assert_eq!(leaves.map(|leaf| leaf.grad().unwrap().item().unwrap()), [12.0, 8.0, 6.0]);

    // The dynamic layer knows no limit.
    for count in [0, 1, 2, 9, 13, 100] {
        let leaves: Vec<_> = (0..count).map(|i| leaf(DType::F32, &[f64::from(i)])).collect();
        let forward = |_: &mut Context, inputs: &Inputs<'_>| {
            inputs.iter().flatten().try_fold(of(DType::F32, &[0.0]), |sum, x| sum.add(x)).map(Into::into)
        };
        let backward = move |_: &Context, grads: Gradients| {
            let grad = grads[0].as_ref().unwrap();
            (0..count).map(|i| grad.mul_scalar(f64::from(i)).map(Some)).collect()
        };
        let y = Custom::new("Sum", forward, backward).on(&leaves.iter().collect::<Vec<_>>());
        if count == 0 {
            assert!(!y.requires_grad());
            continue;
        }
        y.backward_with(&of(DType::F32, &[1.0]), options()).unwrap();
        for (i, leaf) in leaves.iter().enumerate() {
            assert_eq!(grad(leaf), (DType::F32, vec![i as f64]), "{i} of {count}");
        }
    }
}

/// x · w, plus a bias that may be missing, perhaps negated.
#[autograd_function(out = f32)]
struct Affine {
    negate: bool,
}

impl Op for Affine {
    type Inputs = (Tensor<f32>, Tensor<f32>, Option<Tensor<f32>>);

    fn forward(
        &self,
        ctx: &mut Context,
        (x, w, b): (Value<f32>, Value<f32>, Option<Value<f32>>),
    ) -> Result<Value<f32>> {
        ctx.save_for_backward((&x, &w));
        let y = x.mul(&w)?;
        let y = if let Some(b) = b { y.add(&b)? } else { y };
        if self.negate { y.neg() } else { Ok(y) }
    }

    fn backward(
        &self,
        ctx: &Context,
        grad: Value<f32>,
    ) -> Result<(Value<f32>, Value<f32>, Option<Value<f32>>)> {
        let (x, w): (Value<f32>, Value<f32>) = ctx.saved()?;
        let grad = if self.negate { grad.neg()? } else { grad };
        let db = ctx.grad_if_needed(2, || Ok(Some(grad.clone())))?;
        Ok((grad.mul(&w)?, grad.mul(&x)?, db))
    }
}

#[test]
fn o_50_an_input_may_be_missing_and_a_flag_has_no_gradient() {
    let leaf = |value| Tensor::<f32>::scalar(value).requiring_grad().unwrap();
    let gradients = |leaves: &[&Tensor<f32>]| {
        leaves.iter().map(|leaf| leaf.grad().unwrap().item().unwrap()).collect::<Vec<_>>()
    };
    let (x, w) = (leaf(2.0), leaf(3.0));
    let y = Affine { negate: true }.apply((&x, &w, None)).unwrap();
    assert_eq!(y.item().unwrap(), -6.0);
    y.backward().unwrap();
    assert_eq!(gradients(&[&x, &w]), [-3.0, -2.0]);

    let (x, w, b) = (leaf(2.0), leaf(3.0), leaf(5.0));
    let y = Affine { negate: false }.apply((&x, &w, Some(&b))).unwrap();
    assert_eq!(y.item().unwrap(), 11.0);
    y.backward().unwrap();
    assert_eq!(gradients(&[&x, &w, &b]), [3.0, 2.0, 1.0]);

    // A missing input that is given a gradient is an error that names it.
    let x = leaf(2.0);
    let error = Generous.apply((&x, None)).unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("input 1 of `Generous`") && error.contains("`None`"), "{error}");
}

/// Returns a gradient for what was not given.
#[autograd_function(out = f32)]
struct Generous;

impl Op for Generous {
    type Inputs = (Tensor<f32>, Option<Tensor<f32>>);

    fn forward(&self, _: &mut Context, (x, _): (Value<f32>, Option<Value<f32>>)) -> Result<Value<f32>> {
        Ok(x)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<(Value<f32>, Option<Value<f32>>)> {
        Ok((grad.clone(), Some(grad)))
    }
}
