//! Gradient dtypes of leaves, and typed views.

use gradpact::GradDType::{Any, Exactly};
use gradpact::Source;
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
fn a_reset_gradient_dtype_is_the_leafs_own_again() {
    let x = tensor(DType::F16, &[1.0]).requiring_grad_in(Exactly(DType::F32)).unwrap();
    x.backward_with(&tensor(DType::F32, &[0.1]), BackwardOptions::new()).unwrap();
    let error = x.reset_grad_dtype().unwrap_err();
    says(&error, &["cannot keep gradients in f16", "holds a gradient in f32", "`zero_grad`"]);
    x.zero_grad();
    x.reset_grad_dtype().unwrap();
    assert_eq!(x.grad_dtype(), Some(Exactly(DType::F16)));
    assert_eq!(x.grad_dtype_source(), Some(Source::Default));
    x.backward_with(&tensor(DType::F32, &[0.1]), BackwardOptions::new()).unwrap();
    assert_eq!(x.grad().unwrap().dtype(), DType::F16);
    says(&mul(&x, &x).unwrap().reset_grad_dtype().unwrap_err(), &["`reset_grad_dtype` is for leaves"]);
}

#[test]
fn an_assigned_gradient_must_have_the_leafs_shape_and_gradient_dtype() {
    let x = tensor(DType::F16, &[1.0, 2.0]).requiring_grad_in(Exactly(DType::F32)).unwrap();
    let assign = |grad: &gradpact_tests::toy::ToyTensor| x.set_grad(Some(grad));
    let error = assign(&tensor(DType::F16, &[1.0, 1.0])).unwrap_err();
    says(
        &error,
        &["given to `set_grad`", "wrong dtype for a leaf", "expected f32, got f16", "`set_grad_dtype`"],
    );
    let error = assign(&tensor(DType::F32, &[1.0])).unwrap_err();
    says(&error, &["wrong shape for a leaf", "expected [2], got [1]"]);
    let error = assign(&tensor(DType::F64, &[1.0])).unwrap_err();
    says(&error, &["wrong shape and dtype", "expected f32 [2], got f64 [1]"]);
    says(
        &assign(&tensor(DType::I64, &[1.0, 1.0])).unwrap_err(),
        &["given to `set_grad`", "i64", "floating-point"],
    );
    says(&assign(&x).unwrap_err(), &["cannot be its own gradient"]);
    assert!(x.grad().is_none(), "after an error the gradient is as before");
    assign(&tensor(DType::F32, &[3.0, 4.0])).unwrap();
    assert_eq!(values(&x.grad().unwrap()), [3.0, 4.0]);
    x.backward_with(&tensor(DType::F32, &[1.0, 1.0]), BackwardOptions::new()).unwrap();
    assert_eq!(values(&x.grad().unwrap()), [4.0, 5.0], "backward adds to it");
    x.set_grad(None).unwrap();
    assert!(x.grad().is_none());
    x.set_grad_dtype(Any).unwrap();
    assign(&tensor(DType::F64, &[3.0, 4.0])).unwrap();
    assert_eq!(x.grad().unwrap().dtype(), DType::F64);
}

#[test]
fn only_leaves_are_assigned_gradients() {
    let (x, grad) = (leaf(&[1.0]), tensor(DType::F32, &[1.0]));
    let error = mul(&x, &x).unwrap().set_grad(Some(&grad)).unwrap_err();
    says(&error, &["`set_grad` is for leaves", "output 0 of `ToyMul`"]);
    says(&grad.set_grad(None).unwrap_err(), &["`set_grad` is for leaves", "an untracked tensor"]);
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
    let error = apply(Half, &[&x.cast(DType::F64).unwrap()]).unwrap_err();
    says(&error, &["`Half`", "input 0 of `Half` must be f32, got f64"]);
    let error = apply(Half, &[&x, &x]).unwrap_err();
    says(&error, &["input 1 of `Half` must be f16, got f32"]);
    let error = apply::<Toy, _>(Half, &[]).unwrap_err();
    says(&error, &["input 0 of `Half` was not given"]);
    let error = apply(Half, &[&x, &x.cast(DType::F16).unwrap(), &x]).unwrap_err();
    says(&error, &["`Half`", "must have 2 inputs, got 3"]);
}

#[test]
fn a_creation_hook_that_keeps_replacing_the_gradient_being_added_to_is_an_error_and_no_endless_loop() {
    use gradpact::autograd::{NodeRef, node_creation_hook};

    let x = leaf(&[2.0]);
    let options = BackwardOptions::new().create_graph();
    // Tracked by the first, so that adding to it records nodes.
    mul(&x, &x).unwrap().backward_opts(options).unwrap();
    let hooked = x.clone();
    let replace = move |_: &NodeRef<Toy>| hooked.set_grad(Some(&tensor(DType::F32, &[1.0])));
    let y = mul(&x, &x).unwrap();
    let error = node_creation_hook(replace, || y.backward_opts(options)).unwrap_err();
    says(&error, &["node creation hook", "kept replacing the gradient of a leaf"]);
    x.zero_grad();
    y.backward_opts(options).unwrap();
    assert_eq!(values(&x.grad().unwrap()), [4.0]);
    x.zero_grad();
}

#[test]
fn strict_refuses_a_conversion_that_a_hook_brings_about_by_changing_the_leaf() {
    let x = tensor(DType::F16, &[1.0]).requiring_grad_in(Exactly(DType::F32)).unwrap();
    let hooked = x.clone();
    x.register_hook(move |_| hooked.reset_grad_dtype().map(|()| None)).unwrap();
    let send = |options| x.backward_with(&tensor(DType::F32, &[0.1]), options);
    let error = send(BackwardOptions::new().strict()).unwrap_err();
    says(&error, &["a hook changed the leaf's gradient dtype", "expected f16, got f32"]);
    assert!(x.grad().is_none());
    x.set_grad_dtype(Exactly(DType::F32)).unwrap();
    send(BackwardOptions::new()).unwrap();
    assert_eq!(x.grad().unwrap().dtype(), DType::F16, "without it the gradient is converted");
}
