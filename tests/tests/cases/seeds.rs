//! A14 and A15: the seed gradient, the wording of errors, and hooks.

use std::sync::{Arc, Mutex};

use gradpact::prelude::*;

use crate::support::{Custom, FLOATS, Seen, grad, leaf, of, options, scalar, send, values};

/// An operation.
type Formula = fn(&DynTensor) -> Result<DynTensor>;

#[test]
fn o_58_a_seed_of_another_float_is_taken_whatever_the_formula() {
    for dtype in FLOATS {
        for seed in FLOATS {
            let formulas: [(Formula, [f64; 3]); 3] = [
                (|x| x.mul_scalar(2.0), [2.0, 2.0, 2.0]),
                (|x| x.mul(x), [2.0, 4.0, 6.0]),
                (|x| Ok(x.clone()), [1.0, 1.0, 1.0]),
            ];
            for (formula, expected) in formulas {
                let x = leaf(dtype, &[1.0, 2.0, 3.0]);
                formula(&x).unwrap().backward_with(&of(seed, &[1.0; 3]), options()).unwrap();
                assert_eq!(grad(&x), (dtype, expected.to_vec()), "{seed} seed");
            }
        }
    }
}

/// The sum of f16 values, in f32.
#[autograd_function(out = f32)]
struct Sum(Seen);

impl Op for Sum {
    type Inputs = Tensor<f16>;

    fn forward(&self, _: &mut Context, x: Value<f16>) -> Result<Value<f32>> {
        x.sum_in()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f16>> {
        self.0.note_one(&grad);
        grad.cast::<f16>()?.broadcast_to([5])
    }
}

#[test]
fn o_59_a_half_seed_for_an_f32_output_is_converted_or_refused_with_both_named() {
    let x = Tensor::<f16>::ones([5]).unwrap().requiring_grad().unwrap();
    let (seen, seed) = (Seen::default(), scalar(DType::F16, 1.0));
    let sum = Sum(seen.clone()).apply(&x).unwrap();
    sum.as_dyn().backward_with(&seed, options()).unwrap();
    assert_eq!(seen.last(0), (DType::F32, vec![1.0]));
    let error = sum.as_dyn().backward_with(&seed, options().strict()).unwrap_err().to_string();
    assert!(error.contains("seed") && error.contains("output 0 of `Sum`: expected f32, got f16"), "{error}");
    assert_eq!(seen.count(), 1);
}

#[test]
fn o_60_an_error_says_whether_shape_or_dtype_or_both_are_wrong_expected_first() {
    for expected in FLOATS {
        for got in FLOATS {
            for (shape, same) in [(&[10_usize][..], false), (&[], true)] {
                let x = scalar(expected, 1.0).requiring_grad().unwrap();
                let wrong = DynTensor::full(shape, 1.0, got).unwrap();
                let result = gradpact::backward(
                    &[(&Custom::giving("Layer", vec![Some(wrong)]).on(&[&x]), None)],
                    options().strict(),
                );
                let (what, expected, got) = match (same, expected == got) {
                    (true, true) => {
                        result.unwrap();
                        continue;
                    }
                    (false, true) => ("shape", "[]".to_owned(), "[10]".to_owned()),
                    (true, false) => ("dtype", expected.to_string(), got.to_string()),
                    (false, false) => ("shape and dtype", format!("{expected} []"), format!("{got} [10]")),
                };
                let error = result.unwrap_err().to_string();
                let said = format!("wrong {what} for a leaf: expected {expected}, got {got}");
                assert!(error.contains("input 0 of `Layer`") && error.contains(&said), "{said}: {error}");
            }
        }
    }
}

#[test]
fn o_61_a_seed_of_another_kind_is_one_plain_error_for_every_kind() {
    for dtype in [DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32, DType::I64] {
        for declared in [None, Some(GradDType::Any), Some(GradDType::Exactly(DType::F32))] {
            let x = leaf(DType::F32, &[1.0, 1.0]);
            let y = Custom::store("Layer", DType::F32, declared, &Seen::default()).on(&[&x]);
            let error = y.backward_with(&of(dtype, &[1.0, 1.0]), options()).unwrap_err().to_string();
            let said = format!("the seed gradient is {dtype}; a gradient must be floating-point");
            assert!(error.starts_with(&said), "{error}");
            assert!(x.grad().is_none());
        }
    }
}

#[test]
fn o_62_backward_from_an_integer_is_one_line_that_says_why_not() {
    let x = leaf(DType::F32, &[1.0, 3.0]);
    let rounds = Custom::store("Round", DType::I64, None, &Seen::default()).on(&[&x]);
    for (result, words) in [
        (
            rounds.backward_with(&of(DType::F32, &[1.0, 1.0]), options()),
            "output 0 of `Round` is not differentiable",
        ),
        (of(DType::I64, &[1.0]).backward(), "i64"),
        (x.argmax(None, false).unwrap().backward(), "not differentiable"),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n') && error.len() < 200, "{error}");
    }
}

#[test]
fn o_63_a_hook_sees_the_declared_dtype_once_for_each_output() {
    for sent in FLOATS {
        for declared in FLOATS {
            let x = leaf(DType::F32, &[1.0]);
            let declared_as = Some(GradDType::Exactly(declared));
            let y = Custom::store("Layer", DType::F32, declared_as, &Seen::default()).on(&[&x]);
            let saw = Arc::new(Mutex::new(Vec::new()));
            let notes = Arc::clone(&saw);
            let hook = move |grad: &DynTensor| {
                notes.lock().unwrap().push((grad.dtype(), values(grad)));
                Ok(None)
            };
            y.register_hook(hook).unwrap();
            // Two consumers: the hook sees their sum, once.
            let gradient = of(sent, &[1.0]);
            send(&[(&y, &gradient), (&y, &gradient)], options()).unwrap();
            assert_eq!(*saw.lock().unwrap(), [(declared, vec![2.0])], "sent {sent}");
        }
    }
}
