//! One row for each gradient at an edge.

use gradpact::Source;
use gradpact::audit::{Census, Happened, record};
use gradpact::autograd::label;
use gradpact::prelude::*;

use crate::{Store, leaf_in, of, send};

#[test]
fn a_row_says_who_sent_what_to_whom_in_which_dtype_and_what_was_made_of_it() {
    let x = leaf_in(DType::BF16, DType::F32, &[1.0, 2.0]);
    let (result, audit) = record(|| {
        let y = label("first layer", || Store::new("Layer", DType::F16, None).on(&x));
        send(&y.mul(&of(DType::F32, &[0.1, 1e-10]))?, &of(DType::F64, &[1.0, 1.0]))
    });
    result.unwrap();
    let rows: Vec<_> = audit.rows().collect();
    assert_eq!(rows.len(), 3, "the seed to `Mul`, `Mul` to `Layer`, `Layer` to the leaf");

    let seed = rows[0];
    assert_eq!((seed.receiver.function, seed.output, seed.sender.as_ref()), ("Mul", 0, None));
    assert_eq!((seed.arrived, seed.delivered()), (DType::F64, Some(DType::F32)));
    assert_eq!((seed.happened(), seed.contract.source), (Happened::Narrowed, Source::Carried));
    assert_eq!(seed.census(), Some(Census { values: 2, ..Census::default() }), "ones are exact");

    let layer = rows[1];
    assert_eq!((layer.receiver.function, layer.receiver.is_user_code), ("Layer", true));
    assert_eq!(layer.receiver.label.as_deref(), Some("first layer"));
    let (sender, input) = layer.sender.as_ref().unwrap();
    assert_eq!((sender.function, *input, sender.label.as_deref()), ("Mul", 0, None));
    assert_eq!((layer.storage, &layer.shape[..]), (DType::F16, &[2_usize][..]));
    assert_eq!(layer.contract.grad_dtype, GradDType::Exactly(DType::F16));
    assert_eq!(layer.contract.source, Source::Default);
    assert_eq!((layer.arrived, layer.delivered()), (DType::F32, Some(DType::F16)));
    let expected = Census { values: 2, flushed: 1, rounded: 1, ..Census::default() };
    assert_eq!((layer.happened(), layer.census()), (Happened::Narrowed, Some(expected)));

    let leaf = rows[2];
    assert!(leaf.receiver.is_leaf);
    assert_eq!((leaf.storage, leaf.contract.source), (DType::BF16, Source::Declared));
    assert_eq!((leaf.arrived, leaf.delivered()), (DType::F16, Some(DType::F32)));
    assert_eq!(leaf.happened(), Happened::Widened);
    assert_eq!(leaf.census(), Some(Census { values: 2, zero: 1, ..Census::default() }));
}

#[test]
fn what_comes_as_declared_is_told_as_it_is_with_what_is_not_finite_counted_once() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0; 4]);
    let seed = of(DType::F32, &[f64::NAN, f64::INFINITY, 0.0, 1.0]);
    let (result, audit) = record(|| send(&x, &seed));
    result.unwrap();
    let row = audit.rows().next().unwrap();
    assert_eq!(row.happened(), Happened::Nothing);
    let expected = Census { values: 4, nan: 1, infinite: 1, zero: 1, ..Census::default() };
    assert_eq!(row.census(), Some(expected));
}

#[test]
fn every_pair_of_dtypes_is_told_as_what_it_is() {
    for declared in DType::FLOATS {
        for sent in DType::FLOATS {
            let x = leaf_in(DType::F32, declared, &[1.0]);
            let (result, audit) = record(|| send(&x, &of(sent, &[1.0])));
            result.unwrap();
            let row = audit.rows().next().unwrap();
            let expected = match (sent == declared, sent.fits_in(declared)) {
                (true, _) => Happened::Nothing,
                (_, true) => Happened::Widened,
                _ => Happened::Narrowed,
            };
            assert_eq!((row.arrived, row.delivered(), row.happened()), (sent, Some(declared), expected));
        }
    }
}

#[test]
fn an_audit_changes_no_bit() {
    let gradient = |audited: bool| {
        let x = of(DType::F32, &[0.1, 1e-10, 70_000.0, -3.3]).requiring_grad().unwrap();
        let run = || {
            let y = Store::new("Layer", DType::F16, Some(DType::BF16)).on(&x);
            let z = y.exp().unwrap().mul(&y).unwrap().cast(DType::F64).unwrap();
            send(&z.add(&y).unwrap(), &of(DType::F64, &[1.0, 0.3, 1e-12, 1e9])).unwrap();
        };
        match audited {
            true => record(run).0,
            false => run(),
        }
        x.grad().unwrap().to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(gradient(true), gradient(false));
}

#[test]
fn each_backward_call_has_a_number_of_its_own() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let one = of(DType::F32, &[1.0]);
    send(&x, &one).unwrap();
    let (_, audit) = record(|| {
        send(&x, &one).unwrap();
        send(&x.exp().unwrap(), &one).unwrap();
    });
    let calls: Vec<u64> = audit.rows().map(|row| row.call).collect();
    assert_eq!(calls, [0, 1, 1]);
}

#[test]
fn second_order_gradients_are_rows_too() {
    let x = leaf_in(DType::F32, DType::F32, &[2.0]);
    let (second, audit) = record(|| {
        let y = Store::new("Layer", DType::F16, Some(DType::F32)).on(&x.mul(&x).unwrap());
        let seed = of(DType::F32, &[1.0]).requiring_grad().unwrap();
        let options = BackwardOptions::new().create_graph();
        let first = gradpact::grad(&[(&y, Some(&seed))], &[&x], options).unwrap()[0].clone().unwrap();
        gradpact::grad(&[(&first, None)], &[&x], BackwardOptions::new()).unwrap()[0].clone().unwrap()
    });
    assert_eq!(second.to_vec::<f32>().unwrap(), [2.0]);
    assert!(audit.rows().any(|row| row.call == 1));
    audit.assert_lossless().unwrap();
}

#[test]
fn labels_nest_and_end_where_they_end() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let told = |y: &DynTensor| y.grad_fn().unwrap().label();
    let (inner, between) = label("outer", || {
        let inner = label("inner", || x.exp().unwrap());
        (inner, x.exp().unwrap())
    });
    assert_eq!(told(&inner).as_deref(), Some("outer/inner"));
    assert_eq!(told(&between).as_deref(), Some("outer"));
    assert_eq!(told(&x.exp().unwrap()), None);
    let panicking = || label("gone", || panic!("on purpose"));
    std::panic::catch_unwind(panicking).unwrap_err();
    assert_eq!(told(&x.exp().unwrap()), None);
}
