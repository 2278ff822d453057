//! Conversions that are not at an edge: casts in formulas, results that overflow, sums that are rounded.

use gradpact::audit::{Audit, Census, Conversion, Happened, Stage, record};
use gradpact::autograd::save_in;
use gradpact::error::Phase;
use gradpact::prelude::*;

use crate::{Custom, Store, leaf_in, of, send};

/// The only conversion that lost values.
fn only_loss(audit: &Audit) -> &Conversion {
    let mut lost = audit.conversions().filter(|conversion| conversion.census.is_some_and(|c| c.lost()));
    let found = lost.next().unwrap();
    assert!(lost.next().is_none(), "{audit}");
    found
}

fn function(stage: &Stage) -> (&str, Phase) {
    match stage {
        Stage::Function { function, phase, .. } => (function, *phase),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cast_in_a_forward_is_told_with_the_function_and_what_it_lost() {
    let x = leaf_in(DType::BF16, DType::BF16, &[99_840.0, 1.0]);
    let (y, audit) = record(|| Store::new("Works in f16", DType::F16, None).on(&x));
    assert_eq!(y.to_f64_vec().unwrap(), [f64::INFINITY, 1.0]);
    let cast = only_loss(&audit);
    assert_eq!(function(&cast.stage), ("Works in f16", Phase::Forward));
    assert_eq!((cast.from, cast.to, cast.is_result), (DType::BF16, DType::F16, false));
    assert_eq!(cast.census, Some(Census { values: 2, overflowed: 1, ..Census::default() }));
}

#[test]
fn a_cast_in_a_backward_is_told_and_is_a_loss() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let there_and_back = |grad: &DynTensor| grad.cast(DType::F16)?.cast(DType::F32);
    let y = apply(Custom("Sloppy", there_and_back), &[&x]).unwrap()[0].clone();
    let (result, audit) = record(|| send(&y, &of(DType::F32, &[1e-10])));
    result.unwrap();
    assert!(audit.rows().all(|row| row.happened() == Happened::Nothing), "no edge converts anything");
    let cast = only_loss(&audit);
    assert_eq!(function(&cast.stage), ("Sloppy", Phase::Backward));
    let error = audit.assert_lossless().unwrap_err().to_string();
    assert!(error.contains("backward of `Sloppy`") && error.contains("1 of 1 became zero"), "{error}");
}

#[test]
fn a_result_is_told_where_it_overflows_or_vanishes_and_only_there() {
    let x = leaf_in(DType::F16, DType::F16, &[300.0, 1e-4, 1.0]);
    let (_, audit) = record(|| x.mul(&x).unwrap());
    let result = only_loss(&audit);
    assert!(result.is_result);
    assert_eq!((result.from, result.to), (DType::F32, DType::F16));
    let expected = Census { values: 3, overflowed: 1, flushed: 1, ..Census::default() };
    assert_eq!(result.census, Some(expected));
    assert_eq!(function(&result.stage), ("Mul", Phase::Forward));
    let (_, audit) = record(|| x.mul_scalar(1.1).unwrap());
    assert!(audit.is_empty(), "rounding a result is what f16 is about: {audit}");
}

#[test]
fn an_operation_inside_a_function_is_told_with_both_names() {
    let x = leaf_in(DType::F16, DType::F16, &[1.0]);
    let y = apply(Custom("Hop", |grad: &DynTensor| grad.mul_scalar(1e-6)), &[&x]).unwrap()[0].clone();
    let (result, audit) = record(|| send(&y, &of(DType::F16, &[1e-3])));
    result.unwrap();
    let result = only_loss(&audit);
    assert_eq!(function(&result.stage), ("Hop", Phase::Backward));
    assert_eq!(result.operation.as_deref(), Some("MulScalar"));
    assert!(audit.assert_lossless().is_err(), "a gradient vanished, if at no edge");
}

#[test]
fn a_sum_that_is_rounded_is_told_where_gradients_met() {
    // 1 + 2⁻¹¹ + 2⁻¹¹ is exact in f32 and a tie in no order; each pair alone would be.
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let y = Store::new("Layer", DType::F16, None).on(&x);
    let seeds = [65504.0, 65504.0].map(|seed| of(DType::F16, &[seed]));
    let roots = [(&y, Some(&seeds[0])), (&y, Some(&seeds[1]))];
    let (result, audit) = record(|| gradpact::backward(&roots, BackwardOptions::new()));
    result.unwrap();
    let sum = only_loss(&audit);
    assert!(matches!(&sum.stage, Stage::Sum { node, output: 0, .. } if node.function == "Layer"));
    assert_eq!((sum.from, sum.to), (DType::F32, DType::F16));
    assert!(sum.stage.to_string().contains("the sum at output 0 of `Layer`"));
}

#[test]
fn a_sum_at_a_leaf_is_told_over_several_backwards() {
    let x = leaf_in(DType::F32, DType::F16, &[1.0]);
    let (_, audit) = record(|| {
        for _ in 0..2 {
            send(&x, &of(DType::F16, &[65504.0])).unwrap();
        }
    });
    assert_eq!(only_loss(&audit).stage.to_string(), "the sum at a leaf");
}

#[test]
fn both_stages_of_a_sum_with_two_dtypes_are_told() {
    let x = leaf_in(DType::F32, DType::F32, &[256.0, 1.0, 1.0]);
    let stages = |accumulate, result| {
        let (sum, audit) = record(|| x.sum_accumulating_in(accumulate, result).unwrap());
        assert_eq!(sum.dtype(), result);
        audit.conversions().map(|c| (c.from, c.to)).collect::<Vec<_>>()
    };
    assert_eq!(stages(DType::BF16, DType::F32), [(DType::F32, DType::BF16), (DType::BF16, DType::F32)]);
    assert_eq!(stages(DType::F32, DType::BF16), [(DType::F32, DType::BF16)]);
}

#[test]
fn saved_tensors_that_are_narrowed_are_told() {
    let x = leaf_in(DType::F32, DType::F32, &[1e-10]);
    let (y, audit) = record(|| save_in(DType::F16, || x.mul(&x).unwrap()).unwrap());
    let mut narrowed = audit.conversions().filter(|c| c.happened() == Happened::Narrowed);
    let packed = narrowed.next().unwrap();
    assert_eq!(function(&packed.stage), ("Mul", Phase::Pack));
    assert_eq!(packed.census.unwrap().flushed, 1);
    let seed = of(DType::F32, &[1.0]);
    let (_, audit) = record(|| send(&y, &seed).unwrap());
    let unpacked = audit.conversions().next().unwrap();
    assert_eq!((unpacked.from, unpacked.to), (DType::F16, DType::F32));
    assert!(unpacked.stage.to_string().contains("unpacking a saved tensor of `Mul`"), "{}", unpacked.stage);
}

#[test]
fn a_conversion_outside_of_functions_is_told_as_that() {
    let x = of(DType::F32, &[0.1]);
    let (_, audit) = record(|| x.cast(DType::F16).unwrap());
    let cast = audit.conversions().next().unwrap();
    assert_eq!((&cast.stage, cast.census.unwrap().rounded), (&Stage::Outside, 1));
}
