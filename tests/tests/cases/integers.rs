//! A11: integers, `bool` and what else has no gradient of its own.

use gradpact::prelude::*;

use crate::support::{Custom, FLOATS, Seen, grad, leaf, of, options, values};

const INTEGERS: [DType; 5] = [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];

/// Truncates to 8 bits; its gradient goes straight through.
#[autograd_function(out = i8, grad = f32)]
struct Quantize;

impl Op for Quantize {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<i8>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

#[test]
fn o_51_an_integer_output_can_have_a_straight_through_gradient() {
    let x = Tensor::<f32>::from_slice(&[11.0, 11.7], [2]).unwrap().requiring_grad().unwrap();
    let y: Tensor<i8, f32> = Quantize.apply(&x).unwrap();
    assert_eq!(y.to_vec().unwrap(), [11, 11]);
    assert!(y.requires_grad());
    y.backward_with(&Tensor::<f32>::from_slice(&[1232.0, 1.0], [2]).unwrap(), options()).unwrap();
    assert_eq!(x.grad().unwrap().to_vec().unwrap(), [1232.0, 1.0]);

    for out in INTEGERS {
        for declared in FLOATS {
            let (seen, x) = (Seen::default(), leaf(DType::F32, &[11.0]));
            let declared_as = Some(GradDType::Exactly(declared));
            let y = Custom::store("Quantize", out, declared_as, &seen).on(&[&x]);
            assert_eq!((y.dtype(), y.grad_dtype()), (out, declared_as));
            // And on through operations, the gradient dtype carried.
            let loss = y.cast(DType::F32).unwrap().mul_scalar(32.0).unwrap().sum().unwrap();
            loss.backward().unwrap();
            assert_eq!(seen.last(0), (declared, vec![32.0]), "{out}");
            assert_eq!(grad(&x), (DType::F32, vec![32.0]));
        }
        // Without a declaration it has none, and says so.
        let y = Custom::store("Round", out, None, &Seen::default()).on(&[&leaf(DType::F32, &[11.0])]);
        let error = y.cast(DType::F32).unwrap().sum().unwrap().backward().unwrap_err().to_string();
        assert!(error.contains("output 0 of `Round` is not differentiable"), "{error}");
    }
}

/// Rows of a table.
#[autograd_function(out = f32)]
struct Lookup;

impl Op for Lookup {
    type Inputs = (Tensor<f32>, Tensor<i32>);

    fn forward(&self, ctx: &mut Context, (x, index): (Value<f32>, Value<i32>)) -> Result<Value<f32>> {
        ctx.save_for_backward((&x, &index));
        x.index_select(0, &index)
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, ())> {
        let (x, index): (Value<f32>, Value<i32>) = ctx.saved()?;
        Ok((grad.index_add(0, &index, x.shape()[0])?, ()))
    }
}

#[test]
fn o_52_an_integer_input_has_no_gradient_to_write() {
    let x = Tensor::<f32>::from_slice(&[1.0, 2.0, 3.0], [3]).unwrap().requiring_grad().unwrap();
    let index = Tensor::<i32>::from_slice(&[2, 0, 2], [3]).unwrap();
    let y = Lookup.apply((&x, &index)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0, 1.0, 3.0]);
    y.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec().unwrap(), [1.0, 0.0, 2.0]);

    // The built-in gather, with every index dtype.
    for dtype in [DType::I32, DType::I64] {
        let x = leaf(DType::F32, &[1.0, 2.0, 3.0]);
        let y = x.gather(0, &of(dtype, &[2.0, 0.0, 2.0])).unwrap();
        assert_eq!(values(&y), [3.0, 1.0, 3.0]);
        y.sum().unwrap().backward().unwrap();
        assert_eq!(grad(&x), (DType::F32, vec![1.0, 0.0, 2.0]));
    }
}

#[test]
fn o_53_the_gradient_of_an_integer_is_an_error_that_names_its_dtype() {
    for dtype in INTEGERS.into_iter().chain([DType::Bool]) {
        let n = of(dtype, &[1.0]);
        let error = n.requiring_grad().unwrap_err().to_string();
        assert!(error.contains(dtype.as_str()) && error.contains("floating-point"), "{error}");
        let error = n.requiring_grad_in(GradDType::Exactly(DType::F32)).unwrap_err().to_string();
        assert!(error.contains(dtype.as_str()), "{error}");
        let loss = leaf(DType::F32, &[1.0]).mul(&n).unwrap().sum().unwrap();
        let error = gradpact::grad(&[(&loss, None)], &[&n], options()).unwrap_err().to_string();
        assert!(error.contains("input 0 of `grad`") && error.contains(dtype.as_str()), "{error}");
        assert!(gradpact::grad(&[(&loss, None)], &[&n], options().allow_unused()).is_err(), "not even then");
    }
}
