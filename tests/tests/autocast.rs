//! `autocast`: what it converts, what wins over it, and that it leaves gradients alone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use gradpact::autograd::checkpoint;
use gradpact::prelude::*;
use gradpact::{Source, autocast_dtype};

fn matrix(dtype: DType, values: &[f64; 4]) -> DynTensor {
    DynTensor::from_slice(values, [2, 2]).unwrap().cast(dtype).unwrap()
}

#[test]
fn matrix_products_are_formed_in_the_regions_dtype_except_for_f64() {
    let ones = [1.0, 2.0, 3.0, 4.0];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F8E4M3, DType::F8E5M2] {
        for region in [DType::F16, DType::BF16, DType::F32] {
            let x = matrix(dtype, &ones);
            assert_eq!(autocast(region, || x.matmul(&x)).unwrap().unwrap().dtype(), region, "{dtype}");
        }
    }
    let x = matrix(DType::F64, &ones);
    assert_eq!(autocast(DType::F16, || x.matmul(&x)).unwrap().unwrap().dtype(), DType::F64);
    let x = matrix(DType::I64, &ones);
    assert_eq!(autocast(DType::F16, || x.matmul(&x)).unwrap().unwrap().dtype(), DType::I64);
}

#[test]
fn an_f32_gradient_passes_a_bf16_product_unrounded() {
    // As `torch.autocast` does not: there the gradient of the weight arrives rounded to bf16.
    let x = matrix(DType::F32, &[1.0, 0.0, 0.0, 1.0]);
    let w = matrix(DType::F32, &[1.0; 4]).requiring_grad().unwrap();
    let y = autocast(DType::BF16, || x.matmul(&w)).unwrap().unwrap();
    assert_eq!((y.dtype(), y.grad_dtype()), (DType::BF16, Some(GradDType::Exactly(DType::F32))));
    assert_eq!(y.grad_dtype_source(), Some(Source::Carried));
    y.backward_with(&matrix(DType::F32, &[0.1; 4]), BackwardOptions::new()).unwrap();
    assert_eq!(w.grad().unwrap().to_vec::<f32>().unwrap(), [0.1; 4]);
}

#[test]
fn whatever_says_its_dtype_wins_over_the_region() {
    let x = matrix(DType::F32, &[1.003, 0.0, 0.0, 1.0]);
    let typed: Tensor<f32> = Tensor::from_dyn(x.clone()).unwrap();
    autocast(DType::BF16, || {
        assert_eq!(typed.matmul(&typed).unwrap().dtype(), DType::F32);
        assert_eq!(x.matmul_in(&x, DType::F32).unwrap().dtype(), DType::F32);
        assert_eq!(x.add(&x).unwrap().dtype(), DType::F32, "only matrix products are converted");
        let off = autocast(None, || x.matmul(&x)).unwrap().unwrap();
        assert_eq!(off.dtype(), DType::F32);
        assert_eq!(x.matmul(&x).unwrap().dtype(), DType::BF16, "the inner region is over");
    })
    .unwrap();
    assert_eq!(autocast_dtype(), None);
}

#[test]
fn a_region_ends_with_a_panic_and_holds_for_its_thread() {
    let panicking = || autocast(DType::F16, || panic!("on purpose"));
    std::panic::catch_unwind(panicking).unwrap_err();
    assert_eq!(autocast_dtype(), None);
    autocast(DType::F16, || {
        assert_eq!(autocast_dtype(), Some(DType::F16));
        assert_eq!(std::thread::spawn(autocast_dtype).join().unwrap(), None);
    })
    .unwrap();
}

#[test]
fn a_checkpoint_is_recomputed_in_the_region_it_ran_in() {
    let gradient = |checkpointed: bool| {
        let x = matrix(DType::F32, &[0.1, 0.7, -3.3, 300.0]).requiring_grad().unwrap();
        let inside = x.clone();
        let region = move || inside.matmul(&inside)?.matmul(&inside);
        let run = || if checkpointed { checkpoint(region).unwrap() } else { region().unwrap() };
        let y = autocast(DType::BF16, run).unwrap();
        assert_eq!(y.dtype(), DType::BF16);
        y.sum_in(DType::F32).unwrap().backward().unwrap();
        x.grad().unwrap().to_vec::<f32>().unwrap()
    };
    assert_eq!(gradient(true), gradient(false));
}

#[test]
fn an_integer_compute_dtype_is_refused_before_anything_runs() {
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        let error = autocast(dtype, || panic!("must not run")).unwrap_err().to_string();
        assert!(error.contains("`autocast`") && error.contains(&format!("got {dtype}")), "{error}");
    }
}
