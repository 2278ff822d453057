//! The Functions of the README, and others in its style. (The examples check their own.)

use std::marker::PhantomData;

use gradpact::prelude::*;
use gradpact::testing::{Gradcheck, gradcheck, gradgradcheck};

use crate::support::{Found, of};

/// x·σ(x), stored in half precision; its backward receives single precision.
#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.mul(&x.sigmoid()?)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        let s = x.sigmoid()?;
        let slope = x.mul(&s.neg()?.add_scalar(1.0)?)?.add_scalar(1.0)?.mul(&s)?;
        grad.mul(&slope)
    }
}

/// Sum and product, each stored in f16; the first gradient comes in f32, the second as it is sent.
#[autograd_function(out = (f16, f16), grad = (f32, any))]
struct SumAndProduct;

impl Op for SumAndProduct {
    type Inputs = (Tensor<f32>, Tensor<f32>);

    fn forward(
        &self,
        ctx: &mut Context,
        (a, b): (Value<f32>, Value<f32>),
    ) -> Result<(Value<f16>, Value<f16>)> {
        ctx.save_for_backward((&a, &b));
        Ok((a.add(&b)?.cast()?, a.mul(&b)?.cast()?))
    }

    fn backward(
        &self,
        ctx: &Context,
        (sum, product): (Value<f32>, DynTensor),
    ) -> Result<(Value<f32>, Value<f32>)> {
        let (a, b): (Value<f32>, Value<f32>) = ctx.saved()?;
        let product: Value<f32> = product.cast(DType::F32)?.typed()?;
        Ok((sum.add(&product.mul(&b)?)?, sum.add(&product.mul(&a)?)?))
    }
}

/// `factor · x`, in any floating dtype.
#[autograd_function(out = T, grad = T)]
#[derive(Clone)]
struct Scale<T: Float> {
    factor: f64,
    dtype: PhantomData<T>,
}

impl<T: Float> Op for Scale<T> {
    type Inputs = Tensor<T>;

    fn forward(&self, _: &mut Context, x: Value<T>) -> Result<Value<T>> {
        x.mul_scalar(self.factor)
    }

    fn backward(&self, _: &Context, grad: Value<T>) -> Result<Value<T>> {
        grad.mul_scalar(self.factor)
    }
}

/// `x·w + b`, where the bias may be left out.
#[autograd_function(out = f32)]
struct Affine;

impl Op for Affine {
    type Inputs = (Tensor<f32>, Tensor<f32>, Option<Tensor<f32>>);

    fn forward(
        &self,
        ctx: &mut Context,
        (x, w, b): (Value<f32>, Value<f32>, Option<Value<f32>>),
    ) -> Result<Value<f32>> {
        ctx.save_for_backward((&x, &w));
        let y = x.mul(&w)?;
        if let Some(b) = b { y.add(&b) } else { Ok(y) }
    }

    fn backward(
        &self,
        ctx: &Context,
        grad: Value<f32>,
    ) -> Result<(Value<f32>, Value<f32>, Option<Value<f32>>)> {
        let (x, w): (Value<f32>, Value<f32>) = ctx.saved()?;
        let bias = ctx.needs_input_grad(2).then(|| grad.clone());
        Ok((grad.mul(&w)?, grad.mul(&x)?, bias))
    }
}

fn three() -> Tensor<f32> {
    Tensor::from_vec(vec![-1.0, 0.25, 2.0], [3]).unwrap()
}

#[test]
fn the_functions_of_the_readme_pass_twice() {
    let (a, b) = (three(), Tensor::<f32>::from_vec(vec![0.5, -1.0, 0.75], [3]).unwrap());
    gradcheck(Silu, &a).unwrap();
    gradgradcheck(Silu, &a).unwrap();
    gradcheck(SumAndProduct, (&a, &b)).unwrap();
    gradgradcheck(SumAndProduct, (&a, &b)).unwrap();
}

#[test]
fn a_generic_function_passes_in_every_dtype() {
    fn check<T: Float>() {
        let x = Tensor::<T>::from_vec([0.5, -1.0, 2.0].map(T::from_f64).to_vec(), [3]).unwrap();
        let scale = Scale::<T> { factor: 3.0, dtype: PhantomData };
        // In 8 bits not all can be seen.
        let options = Gradcheck::new().allow_unresolved();
        let first = options.check(scale.clone(), &x).found();
        let second = options.check_twice(scale, &x).found();
        assert!(first.passed() && second.passed(), "{first}\n{second}");
    }
    check::<f8e4m3>();
    check::<f8e5m2>();
    check::<f16>();
    check::<bf16>();
    check::<f32>();
    check::<f64>();
}

#[test]
fn optional_inputs_may_be_left_out() {
    let (x, w, b) = (three(), three(), three());
    gradcheck(Affine, (&x, &w, Some(&b))).unwrap();
    let left_out = gradcheck(Affine, (&x, &w, None::<&Tensor<f32>>)).unwrap();
    assert_eq!(left_out.accuracy().len(), 2, "{left_out}");
    let dynamic: [Option<&DynTensor>; 3] = [Some(x.as_dyn()), Some(w.as_dyn()), None];
    gradcheck(Affine, &dynamic[..]).unwrap();
    gradgradcheck(Affine, (&x, &w, None::<&Tensor<f32>>)).unwrap();
}

#[test]
fn inputs_without_elements_scalars_and_matrices_pass() {
    let nothing = of(DType::F32, &[], [2, 0]);
    let report = gradcheck(Silu, &nothing).unwrap();
    assert_eq!(report.accuracy()[0].compared, 0);
    gradcheck(Silu, &Tensor::<f32>::scalar(0.5)).unwrap();
    let matrix = of(DType::F32, &[0.5, -1.0, 0.25, 2.0, -0.5, 1.0], [2, 3]);
    let report = gradcheck(Silu, &matrix.transpose(0, 1).unwrap()).unwrap();
    assert_eq!(report.accuracy()[0].compared, 36);
    gradgradcheck(Silu, &nothing).unwrap();
}

#[test]
fn a_fast_check_of_a_large_input_takes_a_few_evaluations() {
    let mut generator = Generator::new(1);
    let x = Tensor::<f32>::randn([100, 50], &mut generator).unwrap();
    let report = Gradcheck::new().fast().check(Silu, &x).found();
    assert!(report.passed(), "{report}");
    assert_eq!(report.accuracy()[0].compared, 9);
    assert!(report.to_string().contains("9 compared"));
}

/// Square and cube; an output that nobody used gives backward `None`. Its policy is strict.
#[autograd_function(out = (f32, f32), materialize = false, policy = strict)]
struct Powers;

impl Op for Powers {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<(Value<f32>, Value<f32>)> {
        ctx.save_for_backward(&x);
        let square = x.mul(&x)?;
        Ok((square.clone(), square.mul(&x)?))
    }

    fn backward(
        &self,
        ctx: &Context,
        (square, cube): (Option<Value<f32>>, Option<Value<f32>>),
    ) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        let mut grad = Value::zeros(x.shape())?;
        if let Some(square) = square {
            grad = grad.add(&square.mul(&x)?.mul_scalar(2.0)?)?;
        }
        if let Some(cube) = cube {
            grad = grad.add(&cube.mul(&x)?.mul(&x)?.mul_scalar(3.0)?)?;
        }
        Ok(grad)
    }
}

/// 3x, differentiable once.
#[autograd_function(out = f32, once)]
struct Once;

impl Op for Once {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        x.mul_scalar(3.0)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul_scalar(3.0)
    }
}

#[test]
fn functions_with_every_key_of_the_attribute_are_checked() {
    gradcheck(Powers, &three()).unwrap();
    gradgradcheck(Powers, &three()).unwrap();
    gradcheck(Once, &three()).unwrap();
}

#[test]
fn a_second_check_of_what_is_differentiable_once_is_refused() {
    let error = gradgradcheck(Once, &three()).unwrap_err();
    assert!(matches!(error.root(), Error::DifferentiableOnce(name) if name == "Once"), "{error}");
}
