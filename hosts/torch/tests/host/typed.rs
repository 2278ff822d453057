//! The attribute and typed tensors, as a user of tch meets them.

use gradpact::prelude::*;
use gradpact_torch::{FromTch, Torch};
use tch::Kind;

use crate::support::{leaf, read, values};

/// `x · σ(x)`, stored in half precision; its backward receives single precision.
#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op<Torch> for Silu {
    type Inputs = Tensor<f32, f32, Torch>;

    fn forward(&self, ctx: &mut Context<Torch>, x: Value<f32, Torch>) -> Result<Value<f16, Torch>> {
        ctx.save_for_backward(&x);
        Value::from_tch(x.silu().to_kind(Kind::Half))
    }

    fn backward(&self, ctx: &Context<Torch>, grad: Value<f32, Torch>) -> Result<Value<f32, Torch>> {
        let x: Value<f32, Torch> = ctx.saved()?;
        let s = x.sigmoid();
        Value::from_tch(&*grad * &s * (1.0 + &*x * (1.0 - &s)))
    }
}

/// The embedded engine's formulas of the same struct.
impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.mul(&x.sigmoid()?)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        let s = x.sigmoid()?;
        grad.mul(&s)?.mul(&x.mul(&s.neg()?.add_scalar(1.0)?)?.add_scalar(1.0)?)
    }
}

const POINTS: [f64; 4] = [-2.0, -0.5, 0.0, 3.0];

#[test]
fn one_struct_is_one_node_in_either_graph_with_the_same_values_and_gradients() {
    let x = Tensor::<f32, f32, Torch>::from_tch(leaf(&POINTS, Kind::Float)).unwrap();
    let y: Tensor<f16, f32, Torch> = Silu.apply(&x).unwrap();
    assert_eq!(gradpact_torch::grad_fn_name(&y).unwrap().as_deref(), Some("SiluBackward"));
    y.cast::<f32>().unwrap().sum(Kind::Float).backward();
    let (torch_values, torch_grads) = (read(&y), read(&x.grad().unwrap()));

    let x =
        Tensor::<f32>::from_vec(POINTS.map(|x| x as f32).to_vec(), [4]).unwrap().requiring_grad().unwrap();
    let y: Tensor<f16, f32> = Silu.apply(&x).unwrap();
    y.cast::<f32>().unwrap().sum().unwrap().backward().unwrap();
    let values: Vec<f64> = y.to_vec().unwrap().into_iter().map(f64::from).collect();
    let grads: Vec<f64> = x.grad().unwrap().to_vec().unwrap().into_iter().map(f64::from).collect();
    assert_eq!(torch_values, values);
    for (torch, embedded) in torch_grads.iter().zip(&grads) {
        assert!((torch - embedded).abs() < 1e-6, "{torch_grads:?} {grads:?}");
    }
}

#[test]
fn the_typed_conversion_keeps_a_gradient_that_libtorchs_own_would_flush() {
    let through = |typed: bool| {
        let x = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.0], Kind::Float)).unwrap();
        let y: Tensor<f16, f32, Torch> = Silu.apply(&x).unwrap();
        let y = if typed { y.cast::<f32>().unwrap().into_tch() } else { y.to_kind(Kind::Float) };
        (y.sum(Kind::Float) * 1e-10).backward();
        read(&x.grad().unwrap())[0]
    };
    assert_eq!(through(false), 0.0);
    assert!((through(true) / 1e-10 - 0.927_670_5).abs() < 1e-5);
}

#[test]
fn a_conversion_to_a_narrower_dtype_carries_the_gradient_dtype_that_its_type_says() {
    let x = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.0], Kind::Float)).unwrap();
    let y: Tensor<f16, f32, Torch> = x.cast::<f16>().unwrap();
    assert_eq!(gradpact_torch::grad_dtype(&y).unwrap(), Some(GradDType::Exactly(DType::F32)));
    let seed = Value::<f32, Torch>::from_tch(values(&[1e-10], Kind::Float)).unwrap();
    y.backward_with(&seed, BackwardOptions::new()).unwrap();
    assert_eq!(read(&x.grad().unwrap())[0], f64::from(1e-10_f32));
}

#[test]
fn leaves_narrowing_and_widening_work_in_libtorchs_graph() {
    let x = Tensor::<f16, f16, Torch>::from_tch(values(&[1.0, 2.0], Kind::Half)).unwrap();
    let x: Tensor<f16, f32, Torch> = x.requiring_grad_in::<f32>().unwrap();
    assert!(x.requires_grad() && x.grad().is_none());
    let narrow = x.narrow_grad::<f16>().unwrap();
    assert_eq!(gradpact_torch::grad_fn_name(&narrow).unwrap().as_deref(), Some("NarrowGradBackward"));
    let wide: Tensor<f16, f64, Torch> = narrow.widen_grad::<f64>().unwrap();
    let seed = Value::<f64, Torch>::from_tch(values(&[1.0 / 3.0, 1.0], Kind::Double)).unwrap();
    wide.backward_with(&seed, BackwardOptions::new()).unwrap();
    let grad: Value<f32, Torch> = x.grad().unwrap();
    assert_eq!(read(&grad), [f64::from(f16::from_f64(1.0 / 3.0)), 1.0], "rounded to f16 on its way");
    x.zero_grad();
    assert!(x.grad().is_none());
    x.set_grad(Some(&grad)).unwrap();
    assert!(x.grad().is_some());
    assert!(!x.detach().requires_grad());
}

#[test]
fn a_type_must_be_true_of_the_tensor() {
    let storage = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.0], Kind::Half)).unwrap_err();
    assert!(matches!(storage, Error::TypedView { what: "storage dtype", .. }), "{storage}");
    let x = leaf(&[1.0], Kind::Half);
    gradpact_torch::set_grad_dtype(&x, GradDType::Exactly(DType::F32)).unwrap();
    let gradient = Tensor::<f16, f16, Torch>::from_tch(x.shallow_clone()).unwrap_err();
    assert!(matches!(gradient, Error::TypedView { what: "gradient dtype", .. }), "{gradient}");
    assert!(Tensor::<f16, f32, Torch>::from_tch(x).is_ok());
    let x = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.0], Kind::Float)).unwrap();
    let y: Tensor<f16, f32, Torch> = Silu.apply(&x).unwrap();
    assert!(Tensor::<f16, f16, Torch>::from_tch(y.shallow_clone()).is_err());
    assert!(Tensor::<f16, f32, Torch>::from_tch(y.into_tch()).is_ok());
}

/// `a · b`, differentiable as often as one likes.
#[autograd_function(out = f64)]
struct Product;

impl Op<Torch> for Product {
    type Inputs = (Tensor<f64, f64, Torch>, Tensor<f64, f64, Torch>);

    fn forward(
        &self,
        ctx: &mut Context<Torch>,
        (a, b): (Value<f64, Torch>, Value<f64, Torch>),
    ) -> Result<Value<f64, Torch>> {
        ctx.save_for_backward((&a, &b));
        Value::from_tch(&*a * &*b)
    }

    fn backward(
        &self,
        ctx: &Context<Torch>,
        grad: Value<f64, Torch>,
    ) -> Result<(Value<f64, Torch>, Value<f64, Torch>)> {
        let (a, b): (Value<f64, Torch>, Value<f64, Torch>) = ctx.saved()?;
        Ok((Value::from_tch(&*grad * &*b)?, Value::from_tch(&*grad * &*a)?))
    }
}

#[test]
fn the_cube_has_three_derivatives() {
    let x = leaf(&[2.0], Kind::Double);
    let typed = Tensor::<f64, f64, Torch>::from_tch(x.shallow_clone()).unwrap();
    let square = Product.apply((&typed, &typed)).unwrap();
    let mut y = Product.apply((&square, &typed)).unwrap().into_tch();
    let create = BackwardOptions::new().create_graph();
    let mut derivatives = Vec::new();
    for _ in 0..3 {
        y = gradpact_torch::grad(&[(&y, None)], &[&x], create).unwrap().remove(0).unwrap();
        derivatives.push(read(&y)[0]);
    }
    assert_eq!(derivatives, [12.0, 12.0, 6.0]);
}

/// An optional bias, and a second output without a gradient.
#[autograd_function(out = (f32, i64), grad = (f32, none))]
struct Shift;

impl Op<Torch> for Shift {
    type Inputs = (Tensor<f32, f32, Torch>, Option<Tensor<f32, f32, Torch>>);

    fn forward(
        &self,
        ctx: &mut Context<Torch>,
        (x, bias): (Value<f32, Torch>, Option<Value<f32, Torch>>),
    ) -> Result<(Value<f32, Torch>, Value<i64, Torch>)> {
        ctx.save_for_backward(&bias);
        let y = bias.map_or_else(|| x.copy(), |bias| &*x + &*bias);
        let floor = y.floor().to_kind(Kind::Int64);
        Ok((Value::from_tch(y)?, Value::from_tch(floor)?))
    }

    fn backward(
        &self,
        ctx: &Context<Torch>,
        (grad, _): (Value<f32, Torch>, <Tensor<i64, NoGrad, Torch> as gradpact::typed::Slot<Torch>>::Grad),
    ) -> Result<(Value<f32, Torch>, Option<Value<f32, Torch>>)> {
        let bias: Option<Value<f32, Torch>> = ctx.saved()?;
        assert_eq!(bias.is_some(), ctx.needs_input_grad(1));
        Ok((grad.clone(), bias.map(|_| grad)))
    }
}

#[test]
fn an_optional_input_may_be_absent_and_an_integer_output_has_no_gradient() {
    for given in [true, false] {
        let x = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.5], Kind::Float)).unwrap();
        let bias = Tensor::<f32, f32, Torch>::from_tch(leaf(&[1.0], Kind::Float)).unwrap();
        let (y, floor) = Shift.apply((&x, given.then_some(&bias))).unwrap();
        assert!(!floor.as_dyn().array().requires_grad());
        assert_eq!(read(&floor), [if given { 2.0 } else { 1.0 }]);
        y.sum(Kind::Float).backward();
        assert_eq!(read(&x.grad().unwrap()), [1.0]);
        assert_eq!(bias.grad().is_some(), given);
    }
}

#[test]
fn a_typed_tensor_made_a_leaf_in_place_keeps_its_gradient_as_its_type_says() {
    let h = Tensor::<f16, f32, Torch>::from_tch(values(&[1.0, 2.0], Kind::Half)).unwrap();
    let _leaf = h.set_requires_grad(true).unwrap();
    assert_eq!(gradpact_torch::grad_dtype(&h).unwrap(), Some(GradDType::Exactly(DType::F32)));
    let wide = h.cast::<f32>().unwrap();
    (wide.sum(Kind::Float) * 1e-10).backward();
    let grad: Value<f32, Torch> = h.grad().unwrap();
    assert_eq!((grad.dtype(), read(&grad)[0] as f32), (DType::F32, 1e-10));
}

#[test]
fn what_would_be_recorded_in_gradpacts_own_graph_is_refused_for_tensors_of_libtorch() {
    let tensor = DynTensor::<Torch>::from_tch(values(&[1.0], Kind::Half)).unwrap();
    let refused = [
        tensor.requiring_grad().map(drop),
        tensor.requiring_grad_in(GradDType::Exactly(DType::F32)).map(drop),
        tensor.with_grad_dtype(GradDType::Exactly(DType::F32)).map(drop),
        tensor.set_grad(None),
        tensor.set_grad_dtype(GradDType::Any),
    ];
    for result in refused {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("the graph of its engine"), "{message}");
    }
}
