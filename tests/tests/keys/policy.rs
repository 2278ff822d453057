//! `policy`, and `Context::set_policy`.

use gradpact::prelude::*;

use crate::{grad, leaf, of, options, says};

/// Refuses what is not f32.
#[autograd_function(out = f16, grad = f32, policy = strict)]
struct Strict;

impl Op for Strict {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

/// Refuses what is not f16, which nobody declared.
#[autograd_function(out = f16, policy = strict)]
struct StrictDefault;

impl Op for StrictDefault {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f32>> {
        grad.cast()
    }
}

/// A Function whose forward sets this policy, under an attribute that has set one or has not.
macro_rules! choosing {
    ($($name:ident: $($key:ident = $value:ident)?;)*) => {$(
        #[autograd_function(out = f16, grad = f32 $(, $key = $value)?)]
        struct $name {
            policy: Option<Policy>,
        }

        impl Op for $name {
            type Inputs = Tensor<f32>;

            fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
                if let Some(policy) = self.policy {
                    ctx.set_policy(policy);
                }
                x.cast()
            }

            fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
                Ok(grad)
            }
        }
    )*};
}
choosing! { Cast: policy = cast; Open: ; }

/// Sends one gradient to `y`.
fn send(y: &DynTensor, dtype: DType) -> Result<()> {
    y.backward_with(&of(dtype, &[1.5]), options())
}

#[test]
fn strict_refuses_every_other_dtype_before_backward_runs_and_admits_the_declared_one() {
    for dtype in DType::FLOATS {
        let x = leaf(&[1.0]);
        let result = send(Strict.apply(&x).unwrap().as_dyn(), dtype);
        if dtype == DType::F32 {
            result.unwrap();
            assert_eq!(grad(&x), [1.5]);
            continue;
        }
        let error = result.unwrap_err();
        says(&error, &["the seed gradient", "output 0 of `Strict`", &format!("expected f32, got {dtype}")]);
        assert!(x.grad().is_none());
    }
}

#[test]
fn strict_names_the_function_that_sent_the_gradient() {
    let x = leaf(&[1.0]);
    let y = Strict.apply(&x).unwrap();
    // The conversion to f64 carries f64 back.
    let error = y.cast::<f64>().unwrap().sum().unwrap().backward().unwrap_err();
    says(&error, &["input 0 of `Cast`", "output 0 of `Strict`", "expected f32, got f64"]);
    // Through f32 nothing is converted.
    Strict.apply(&x).unwrap().cast::<f32>().unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(grad(&x), [1.0]);
}

#[test]
fn strict_holds_for_the_default_gradient_dtype_too() {
    let x = leaf(&[1.0]);
    let y = || StrictDefault.apply(&x).unwrap().into_dyn();
    says(&send(&y(), DType::F32).unwrap_err(), &["output 0 of `StrictDefault`", "expected f16, got f32"]);
    send(&y(), DType::F16).unwrap();
    assert_eq!(grad(&x), [1.5]);
}

/// Strict about its first output only: the second takes any gradient.
#[autograd_function(out = (f16, f16), grad = (f32, any), policy = strict)]
struct Half;

impl Op for Half {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<(Value<f16>, Value<f16>)> {
        Ok((x.cast()?, x.cast()?))
    }

    fn backward(&self, _: &Context, (first, second): (Value<f32>, DynTensor)) -> Result<Value<f32>> {
        let second: Value<f32> = second.cast(DType::F32)?.typed()?;
        first.add(&second)
    }
}

#[test]
fn strict_has_nothing_against_what_any_takes() {
    let x = leaf(&[1.0]);
    let (first, second) = Half.apply(&x).unwrap();
    send(second.as_dyn(), DType::F64).unwrap();
    assert_eq!(grad(&x), [1.5], "and zeros for the other output have its declared dtype");
    says(&send(first.as_dyn(), DType::F64).unwrap_err(), &["output 0 of `Half`", "expected f32, got f64"]);
}

#[test]
fn what_the_key_has_settled_forward_cannot_change() {
    let x = leaf(&[1.0]);
    for policy in [Policy::Strict, Policy::Cast] {
        let cast = || Cast { policy: Some(policy) };
        for error in [cast().apply(&x).unwrap_err(), no_grad(|| cast().apply(&x)).unwrap_err()] {
            says(&error, &["forward of `Cast`", "`set_policy`", "change its `policy = …`"]);
        }
    }
    send(Cast { policy: None }.apply(&x).unwrap().as_dyn(), DType::F64).unwrap();
    assert_eq!(grad(&x), [1.5]);
}

#[test]
fn without_the_key_forward_may_choose_the_policy() {
    for (policy, strict) in [(None, false), (Some(Policy::Cast), false), (Some(Policy::Strict), true)] {
        let x = leaf(&[1.0]);
        let result = send(Open { policy }.apply(&x).unwrap().as_dyn(), DType::F64);
        if strict {
            says(&result.unwrap_err(), &["output 0 of `Open`", "expected f32, got f64"]);
        } else {
            result.unwrap();
            assert_eq!(grad(&x), [1.5]);
        }
    }
}
