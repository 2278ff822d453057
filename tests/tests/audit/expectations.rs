//! What tests of a user's own say about gradients' dtypes.

use gradpact::audit::record;
use gradpact::prelude::*;

use crate::{Store, leaf_in, of, send};

#[test]
fn a_lossless_program_passes_and_another_is_told_with_its_rows() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0, 2.0]);
    let run = |declared| {
        let y = Store::new("Layer", DType::F16, declared).on(&x);
        record(|| send(&y, &of(DType::F32, &[0.1, 1e-10])).unwrap()).1
    };
    run(Some(DType::F32)).assert_lossless().unwrap();
    run(Some(DType::F64)).assert_lossless().unwrap_err();
    let error = run(None).assert_lossless().unwrap_err();
    let text = error.to_string();
    for part in
        ["1 of 2 gradients lost", "output 0 of `Layer`", "f16 (default)", "1 of 2 became zero", "the seed"]
    {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
    assert!(matches!(error, Error::Audit(_)));
}

#[test]
fn what_a_function_received_can_be_asserted() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let y = Store::new("Layer", DType::F16, Some(DType::F32)).on(&x);
    let (_, audit) = record(|| send(&y, &of(DType::F64, &[0.1])).unwrap());
    audit.assert_received("Layer", 0, DType::F32).unwrap();
    let text = audit.assert_received("Layer", 0, DType::F16).unwrap_err().to_string();
    assert!(
        text.contains("output 0 of `Layer` must receive f16") && text.contains("f32 (declared)"),
        "{text}"
    );
    let text = audit.assert_received("Lair", 0, DType::F16).unwrap_err().to_string();
    assert!(text.contains("no gradient came to output 0 of `Lair`") && text.contains("`Layer`"), "{text}");
    let text = audit.assert_received("Layer", 1, DType::F32).unwrap_err().to_string();
    assert!(text.contains("no gradient came to output 1 of `Layer`"), "{text}");
}
