//! A gradient that ends wide but passed through a narrower dtype.

use gradpact::audit::{Audit, RoundTrip, record};
use gradpact::prelude::*;

use crate::{Custom, Store, leaf_in, of, send};

fn trips(audit: &Audit) -> Vec<RoundTrip> {
    audit.lossy_round_trips()
}

fn observed(y: &DynTensor, seed: &DynTensor) -> Audit {
    let (result, audit) = record(|| send(y, seed));
    result.unwrap();
    audit
}

#[test]
fn first_and_last_dtype_agree_and_yet_the_narrowing_is_found_with_its_place() {
    for narrow in [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16] {
        let x = leaf_in(DType::F32, DType::F32, &[1.0]);
        let y = Store::new("ToLocal", narrow, None).on(&x);
        let audit = observed(&y, &of(DType::F32, &[257.0]));
        let found = trips(&audit);
        assert_eq!(found.len(), 1, "{narrow}: {audit}");
        let RoundTrip { narrowed, arrived, dtype } = &found[0];
        assert_eq!((narrowed.from, narrowed.to, *dtype), (DType::F32, narrow, DType::F32));
        assert_eq!((narrowed.place.as_str(), arrived.as_str()), ("at output 0 of `ToLocal`", "a leaf"));
        assert!(!narrowed.declared);
        assert!(found[0].to_string().starts_with("lossy round trip: f32 at a leaf, but on the way f32 →"));
    }
}

#[test]
fn a_declared_gradient_dtype_makes_no_round_trip_and_a_declared_narrowing_says_so() {
    let x = leaf_in(DType::BF16, DType::F32, &[1.0]);
    let y = Store::new("ToLocal", DType::BF16, Some(DType::F32)).on(&x);
    assert!(trips(&observed(&y, &of(DType::F32, &[257.0]))).is_empty());
    let y = Store::new("Narrow", DType::F32, Some(DType::BF16)).on(&x);
    let found = trips(&observed(&y, &of(DType::F32, &[257.0])));
    assert!(found[0].narrowed.declared && found[0].to_string().contains("(declared there)"));
}

#[test]
fn it_is_followed_through_operations_sums_and_functions() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0, 2.0]);
    // From the leaf up: operations, a Function, the narrow link, operations again.
    let h = x.exp().unwrap().mul(&x).unwrap();
    let h = apply(Custom("Between", |grad: &DynTensor| Ok(grad.clone())), &[&h]).unwrap()[0].clone();
    let narrow = Store::new("Culprit", DType::F16, None).on(&h);
    let wide = Store::new("Fine", DType::F16, Some(DType::F32)).on(&h);
    let loss = narrow.cast(DType::F32).unwrap().add(&wide).unwrap().sum().unwrap();
    let (result, audit) = record(|| loss.mul_scalar(1e-10)?.backward());
    result.unwrap();
    let found = trips(&audit);
    assert_eq!(found.len(), 1, "{audit}");
    assert_eq!(found[0].narrowed.place, "at output 0 of `Culprit`");
    // `Between` takes any dtype: both gradients as they came, and their sum in the widest.
    assert_eq!(found[0].arrived, "output 0 of `Mul`");
    assert_eq!(found[0].narrowed.census.unwrap().flushed, 2);
}

#[test]
fn each_narrowing_of_a_chain_is_found_once() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let mut y = x;
    for name in ["First", "Second", "Third"] {
        y = Store::new(name, DType::F16, None).on(&y);
        y = Store::new("Wide", DType::F32, None).on(&y);
    }
    let found = trips(&observed(&y, &of(DType::F32, &[0.1])));
    let places: Vec<_> = found.iter().map(|trip| trip.narrowed.place.as_str()).collect();
    assert_eq!(places, ["at output 0 of `Third`", "at output 0 of `Second`", "at output 0 of `First`"]);
}

#[test]
fn a_backward_that_narrows_inside_is_found_by_its_cast_or_by_its_result() {
    type Sloppy = fn(&DynTensor) -> Result<DynTensor>;
    let cases: [(Sloppy, &str); 3] = [
        // There and back: no edge shows anything.
        (|grad| grad.cast(DType::F16)?.cast(DType::F32), "in backward of `Sloppy`"),
        // The edge widens it again.
        (|grad| grad.cast(DType::F16), "in backward of `Sloppy`"),
        // No cast at all: a product that is stored narrow.
        (
            |grad| {
                let one = DynTensor::ones([1, 1], DType::F32)?;
                grad.reshape([1, 1])?.matmul_in(&one, DType::F16)?.reshape([1])
            },
            "in the result of backward of `Sloppy`",
        ),
    ];
    for (backward, place) in cases {
        let x = leaf_in(DType::F32, DType::F32, &[1.0]);
        let y = apply(Custom("Sloppy", backward), &[&x]).unwrap()[0].clone();
        let audit = observed(&y, &of(DType::F32, &[0.1]));
        let found = trips(&audit);
        assert_eq!(found.len(), 1, "{audit}");
        assert_eq!(found[0].narrowed.place, place);
        assert_eq!((found[0].narrowed.from, found[0].narrowed.to), (DType::F32, DType::F16));
    }
}

#[test]
fn a_gradient_that_ends_narrow_is_no_round_trip() {
    let x = leaf_in(DType::F16, DType::F16, &[1.0]);
    let audit = observed(&x, &of(DType::F32, &[0.1]));
    assert!(trips(&audit).is_empty());
    assert!(audit.assert_lossless().is_err(), "a narrowing it is");
}
