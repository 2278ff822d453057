//! Gradient dtypes of leaves, and typed views.

use gradpact::GradDType::{Any, Exactly};
use gradpact::prelude::*;
use gradpact_tests::toy::{Toy, mul, tensor};

use crate::{leaf, says, values};

#[test]
fn only_floating_dtypes_are_gradient_dtypes() {
    let x = leaf(&[1.0]);
    let y = mul(&x, &x).unwrap();
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        for (error, call) in [
            (tensor(dtype, &[1.0]).requiring_grad().unwrap_err(), "requiring_grad"),
            (tensor(dtype, &[1.0]).requiring_grad_in(Exactly(DType::F32)).unwrap_err(), "requiring_grad"),
            (tensor(DType::F32, &[1.0]).requiring_grad_in(Exactly(dtype)).unwrap_err(), "requiring_grad"),
            (x.set_grad_dtype(Exactly(dtype)).unwrap_err(), "set_grad_dtype"),
            (y.with_grad_dtype(Exactly(dtype)).unwrap_err(), "with_grad_dtype"),
        ] {
            says(&error, &[&format!("`{call}`"), "floating-point", &format!("got {dtype}")]);
        }
    }
    assert_eq!(x.grad_dtype(), Some(Exactly(DType::F32)));
}

#[test]
fn only_leaves_change_their_gradient_dtype() {
    let x = leaf(&[1.0]);
    let error = mul(&x, &x).unwrap().set_grad_dtype(Any).unwrap_err();
    says(&error, &["`set_grad_dtype` is for leaves", "output 0 of `ToyMul`"]);
    let error = tensor(DType::F32, &[1.0]).set_grad_dtype(Any).unwrap_err();
    says(&error, &["`set_grad_dtype` is for leaves", "an untracked tensor"]);
}

#[test]
fn a_leaf_that_holds_a_gradient_keeps_its_dtype_until_that_is_zeroed() {
    let x = leaf(&[1.0]);
    x.backward().unwrap();
    let error = x.set_grad_dtype(Exactly(DType::F64)).unwrap_err();
    says(&error, &["cannot keep gradients in f64", "holds a gradient in f32", "`zero_grad`"]);
    x.zero_grad();
    x.set_grad_dtype(Exactly(DType::F64)).unwrap();
    x.backward().unwrap();
    assert_eq!(x.grad().unwrap().dtype(), DType::F64);
}

#[test]
fn a_typed_view_of_a_tensor_with_other_dtypes_is_an_error_with_both() {
    let x = leaf(&[1.0]);
    let error = x.typed::<f16, f32>().unwrap_err();
    says(&error, &["storage dtype", "expected", "f16", "got f32"]);
    let error = x.typed::<f32, f64>().unwrap_err();
    says(&error, &["gradient dtype", "expected", "f64", "got f32"]);
    let error = x.typed::<f32, AnyGrad>().unwrap_err();
    says(&error, &["gradient dtype", "any", "got f32"]);
    x.typed::<f32, f32>().unwrap();
}

/// Stored in f16, gradient in f32, but its forward and backward go by `self.0`.
#[autograd_function(out = f16, grad = f32)]
struct Half;

impl Op<Toy> for Half {
    type Inputs = (Tensor<f32, f32, Toy>, Option<Tensor<f16, f16, Toy>>);

    fn forward(
        &self,
        _: &mut Context<Toy>,
        (x, other): (Value<f32, Toy>, Option<Value<f16, Toy>>),
    ) -> Result<Value<f16, Toy>> {
        other.map_or_else(|| x.as_dyn().cast(DType::F16)?.typed(), Ok)
    }

    fn backward(
        &self,
        _: &Context<Toy>,
        grad: Value<f32, Toy>,
    ) -> Result<(Value<f32, Toy>, Option<Value<f16, Toy>>)> {
        Ok((grad, None))
    }
}

#[test]
fn an_optional_input_may_be_missing_and_so_may_its_gradient() {
    let x: Tensor<f32, f32, Toy> = leaf(&[1.5]).typed().unwrap();
    let y: Tensor<f16, f32, Toy> = Half.apply((&x, None)).unwrap();
    y.backward().unwrap();
    assert_eq!(values(x.as_dyn().grad().as_ref().unwrap()), [1.0]);
}

#[test]
fn inputs_of_another_dtype_or_number_reach_a_generated_function_as_errors_with_position_and_both() {
    let x = leaf(&[1.0]);
    let error = gradpact::apply(Half, &[&x.cast(DType::F64).unwrap()]).unwrap_err();
    says(&error, &["`Half`", "input 0 of `Half` must be f32, got f64"]);
    let error = gradpact::apply(Half, &[&x, &x]).unwrap_err();
    says(&error, &["input 1 of `Half` must be f16, got f32"]);
    let error = gradpact::apply::<Toy, _>(Half, &[]).unwrap_err();
    says(&error, &["input 0 of `Half` was not given"]);
    let error = gradpact::apply(Half, &[&x, &x.cast(DType::F16).unwrap(), &x]).unwrap_err();
    says(&error, &["`Half`", "must have 2 inputs, got 3"]);
}
