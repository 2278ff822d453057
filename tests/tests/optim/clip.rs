//! The norm of all gradients, and clipping by it.

use gradpact::optim::{clip_grad_norm, clip_grad_norm_if_finite, grad_norm};
use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{FLOATS, parameter, says, send, values};

fn grads(param: &DynTensor) -> Vec<f64> {
    values(&param.grad().unwrap())
}

#[test]
fn o_30_the_norm_of_nine_hundreds_is_three_hundred_in_every_dtype() {
    for dtype in FLOATS {
        let mut param = parameter(DType::F32, dtype, &[0.0; 9]);
        send(&param, &[100.0; 9]);
        let hundred = format::round(dtype, 100.0);
        assert_eq!(grad_norm(&mut [&mut param]).unwrap(), 3.0 * hundred, "{dtype}");
    }
}

#[test]
fn the_norm_is_that_of_all_gradients_together_whatever_their_dtypes() {
    let mut a = parameter(DType::F16, DType::F32, &[0.0; 2]);
    let mut b = parameter(DType::F64, DType::F64, &[0.0]);
    let mut c = Tensor::<bf16>::zeros([1]).unwrap().requiring_grad().unwrap();
    let mut none = parameter(DType::F32, DType::F32, &[0.0]);
    send(&a, &[1.0, 2.0]);
    send(&b, &[4.0]);
    send(c.as_dyn(), &[10.0]);
    // 1 + 4 + 16 + 100 = 11²
    assert_eq!(grad_norm(&mut [&mut a, &mut b, &mut c, &mut none]).unwrap(), 11.0);
    assert_eq!(grad_norm(&mut [&mut none]).unwrap(), 0.0);
}

#[test]
fn squares_beyond_f32_do_not_make_the_norm_infinite() {
    let mut param = parameter(DType::F32, DType::F32, &[0.0; 4]);
    send(&param, &[2.0_f64.powi(100); 4]);
    assert_eq!(grad_norm(&mut [&mut param]).unwrap(), 2.0_f64.powi(101));
    assert_eq!(clip_grad_norm(&mut [&mut param], 2.0).unwrap(), 2.0_f64.powi(101));
    assert_eq!(grads(&param), [1.0; 4]);
}

#[test]
fn clipping_scales_all_gradients_by_one_factor_and_rounds_once_to_their_dtype() {
    let mut a = parameter(DType::F32, DType::F64, &[0.0]);
    let mut b = parameter(DType::F32, DType::F16, &[0.0]);
    send(&a, &[3.0]);
    send(&b, &[-4.0]);
    assert_eq!(clip_grad_norm(&mut [&mut a, &mut b], 1.0).unwrap(), 5.0);
    let factor = 1.0 / (5.0 + 1e-6);
    assert_eq!(grads(&a), [3.0 * factor]);
    assert_eq!(grads(&b), [format::round(DType::F16, -4.0 * f64::from(factor as f32))]);
    assert_eq!(b.grad().unwrap().dtype(), DType::F16);
}

#[test]
fn a_norm_within_the_limit_changes_no_gradient() {
    for limit in [5.1, f64::INFINITY] {
        let mut param = parameter(DType::F32, DType::F32, &[0.0; 2]);
        send(&param, &[3.0, 4.0]);
        assert_eq!(clip_grad_norm(&mut [&mut param], limit).unwrap(), 5.0);
        assert_eq!(grads(&param), [3.0, 4.0]);
    }
}

#[test]
fn a_limit_of_zero_makes_the_gradients_zero() {
    let mut param = parameter(DType::F32, DType::F32, &[0.0; 2]);
    send(&param, &[3.0, 4.0]);
    clip_grad_norm(&mut [&mut param], 0.0).unwrap();
    assert_eq!(grads(&param), [0.0, 0.0]);
}

#[test]
fn a_norm_that_is_not_finite_is_returned_or_on_request_an_error_that_counts() {
    for bad in [f64::INFINITY, f64::NAN] {
        let fresh = || {
            let params = [[1.0, 1.0, 1.0], [bad, 1.0, bad]];
            params.map(|grad| {
                let param = parameter(DType::F32, DType::F16, &[0.0; 3]);
                send(&param, &grad);
                param
            })
        };
        let [mut a, mut b] = fresh();
        says(
            clip_grad_norm_if_finite(&mut [&mut a, &mut b], 1.0),
            &["`clip_grad_norm_if_finite`", "parameter 1", "a finite gradient", "2 values"],
        );
        assert_eq!(grads(&a), [1.0; 3], "nothing was clipped");
        // As in PyTorch: finite values become zero by an infinite norm, and NaN by one that is NaN.
        assert!(!clip_grad_norm(&mut [&mut a, &mut b], 1.0).unwrap().is_finite());
        assert!(grads(&a).iter().all(|&value| if bad.is_nan() { value.is_nan() } else { value == 0.0 }));
        assert!(grads(&b)[0].is_nan());
    }
    let mut param = parameter(DType::F64, DType::F64, &[0.0]);
    send(&param, &[1e300]);
    says(clip_grad_norm_if_finite(&mut [&mut param], 1.0), &["the gradients are finite", "inf"]);
}

#[test]
fn a_finite_norm_is_clipped_by_both() {
    let mut param = parameter(DType::F32, DType::F32, &[0.0]);
    send(&param, &[8.0]);
    assert_eq!(clip_grad_norm_if_finite(&mut [&mut param], 4.0).unwrap(), 8.0);
    assert!((grads(&param)[0] - 4.0).abs() < 1e-5);
}

#[test]
fn a_limit_that_makes_no_sense_and_parameters_that_are_none_are_errors() {
    let mut param = parameter(DType::F32, DType::F32, &[0.0]);
    for bad in [-1.0, f64::NAN] {
        says(
            clip_grad_norm(&mut [&mut param], bad),
            &["`clip_grad_norm`", "max_norm", &format!("got {bad}")],
        );
    }
    let (mut again, mut product) = (param.clone(), param.mul(&param).unwrap());
    says(clip_grad_norm(&mut [&mut param, &mut again], 1.0), &["parameter 1", "parameter 0 again"]);
    says(clip_grad_norm(&mut [&mut product], 1.0), &["parameter 0", "output 0 of `Mul`"]);
    says(clip_grad_norm(&mut [], 1.0), &["empty"]);
}
