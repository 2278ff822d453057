//! Two audits of one program.

use gradpact::audit::{Audit, record};
use gradpact::prelude::*;

use crate::{Store, leaf_in, of, send};

fn audit(declared: Option<DType>, twice: bool) -> Audit {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let y = Store::new("Layer", DType::F16, declared).on(&x);
    let y = if twice { Store::new("Other", DType::F32, None).on(&y) } else { y };
    record(|| send(&y, &of(DType::F32, &[1e-10])).unwrap()).1
}

#[test]
fn the_same_program_has_no_difference_though_its_nodes_are_others() {
    let comparison = audit(None, true).compare(&audit(None, true));
    assert_eq!((comparison.differences.len(), comparison.to_string().as_str()), (0, "no difference\n"));
}

#[test]
fn a_declaration_shows_where_it_makes_a_difference_and_nowhere_else() {
    let comparison = audit(None, true).compare(&audit(Some(DType::F32), true));
    let [layer, leaf] = &comparison.differences[..] else { panic!("{comparison}") };
    assert_eq!(layer.gradient, "output 0 of `Layer`");
    let before = layer.before.as_deref().unwrap();
    assert!(before.contains("f16 (default): f32 → f16, narrowed: 1 of 1 became zero"), "{before}");
    assert_eq!(layer.after.as_deref(), Some("f32 (declared): f32 → f32, –"));
    // The leaf got zero, widened; now the gradient as it was sent.
    assert_eq!(leaf.gradient, "a leaf");
}

#[test]
fn rows_that_only_one_audit_has_are_told_as_missing_in_the_other() {
    let (short, long) = (audit(None, false), audit(None, true));
    let missing = |comparison: gradpact::audit::Comparison| -> Vec<(bool, bool)> {
        comparison.differences.iter().map(|d| (d.before.is_some(), d.after.is_some())).collect()
    };
    assert!(missing(short.compare(&long)).contains(&(false, true)));
    assert!(missing(long.compare(&short)).contains(&(true, false)));
}
