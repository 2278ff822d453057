//! Audits nested, on several threads, across a panic, across a failed backward.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gradpact::audit::{Happened, Outcome, Recorder, record};
use gradpact::prelude::*;
use gradpact_tests::toy;

use crate::{Custom, Store, leaf_in, of, send};

fn run(name: &'static str) {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    send(&Store::new(name, DType::F16, None).on(&x), &of(DType::F32, &[0.1])).unwrap();
}

fn names(audit: &gradpact::audit::Audit) -> Vec<&str> {
    audit.rows().filter(|row| !row.receiver.is_leaf).map(|row| row.receiver.function).collect()
}

#[test]
fn an_outer_audit_holds_what_an_inner_one_holds_and_not_the_other_way_round() {
    let (inner, outer) = record(|| {
        run("Before");
        let ((), inner) = record(|| run("Inside"));
        run("After");
        inner
    });
    run("Outside");
    assert_eq!(names(&inner), ["Inside"]);
    assert_eq!(names(&outer), ["Before", "Inside", "After"]);
    assert_eq!(inner.rows().map(|row| row.call).max(), Some(0), "calls are counted by each for itself");
}

#[test]
fn recorders_may_end_in_any_order() {
    let (first, second) = (Recorder::start(), Recorder::start());
    run("Both");
    let first = first.finish();
    run("Second only");
    assert_eq!(names(&first), ["Both"]);
    assert_eq!(names(&second.so_far()), ["Both", "Second only"]);
    drop(second);
    let ((), empty) = record(|| ());
    assert!(empty.is_empty());
}

#[test]
fn each_thread_has_its_own_audits() {
    let ((), audit) = record(|| {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let ((), own) = record(|| run("Theirs"));
                    assert_eq!(names(&own), ["Theirs"]);
                });
            }
        });
        run("Mine");
    });
    assert_eq!(names(&audit), ["Mine"]);
}

#[test]
fn rows_up_to_a_panic_are_kept_and_the_audit_ends_with_it() {
    let recorder = Recorder::start();
    catch_unwind(AssertUnwindSafe(|| {
        run("Before");
        let _inner = Recorder::start();
        panic!("on purpose");
    }))
    .unwrap_err();
    run("After");
    assert_eq!(names(&recorder.finish()), ["Before", "After"]);
    catch_unwind(|| record(|| panic!("on purpose"))).unwrap_err();
    let ((), clean) = record(|| run("Clean"));
    assert_eq!(names(&clean), ["Clean"], "nothing leaks from the audit that ended in a panic");
}

#[test]
fn rows_up_to_a_failing_backward_are_kept() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let ways: [fn(&DynTensor) -> Result<DynTensor>; 3] =
        [|_| Err(Error::custom("on purpose")), |_| panic!("on purpose"), |grad| grad.reshape([1, 1])];
    for fails in ways {
        let y = apply(Custom("Fails", fails), &[&x]).unwrap()[0].clone();
        let z = Store::new("Above", DType::F16, None).on(&y);
        let (result, audit) = record(|| send(&z, &of(DType::F32, &[0.1])));
        result.unwrap_err();
        assert_eq!(names(&audit), ["Above", "Fails"]);
        let ((), clean) = record(|| run("Clean"));
        assert_eq!(names(&clean), ["Clean"]);
    }
    assert!(x.grad().is_none());
}

#[test]
fn a_refused_gradient_is_a_row_with_its_error() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let y = Store::new("Layer", DType::F16, None).on(&x);
    let options = BackwardOptions::new().strict();
    let (result, audit) = record(|| y.backward_with(&of(DType::F32, &[0.1]), options));
    let error = result.unwrap_err().to_string();
    let row = audit.rows().next().unwrap();
    assert_eq!((row.happened(), row.arrived, row.delivered()), (Happened::Refused, DType::F32, None));
    assert_eq!(row.outcome, Outcome::Refused(error));
    assert!(audit.assert_lossless().unwrap_err().to_string().contains("refused"));
    // A wrong shape too.
    let (_, audit) = record(|| send(&y, &of(DType::F32, &[0.1, 0.2])));
    assert_eq!(audit.rows().next().unwrap().happened(), Happened::Refused);
}

#[test]
fn an_engine_that_does_not_count_is_audited_all_the_same() {
    let x = toy::tensor(DType::F16, &[1.0]).requiring_grad().unwrap();
    let seed = toy::tensor(DType::F32, &[0.1]);
    let (result, audit) = record(|| x.backward_with(&seed, BackwardOptions::new()));
    result.unwrap();
    let row = audit.rows().next().unwrap();
    assert_eq!((row.happened(), row.census()), (Happened::Narrowed, None));
    assert!(audit.assert_lossless().is_err());
    assert!(audit.to_string().contains("narrowed"));
}

#[test]
fn a_long_chain_is_audited_in_linear_time_and_memory() {
    let x = leaf_in(DType::F32, DType::F32, &[1.0]);
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.neg().unwrap();
    }
    let (result, audit) = record(|| y.backward_with(&of(DType::F32, &[1.0]), BackwardOptions::new()));
    result.unwrap();
    assert_eq!(audit.rows().count(), 20_001);
    assert!(audit.lossy_round_trips().is_empty());
    assert!(audit.compare(&audit).differences.is_empty());
}
