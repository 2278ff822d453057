//! What the compiler says to each mistake that the attribute and the typed layer answer for, word for word.
//!
//! A folder holds one kind of mistake, a file one mistake, and each folder's `many.rs` several, all of which are reported.
//! `TRYBUILD=overwrite` writes the answers anew: read them as someone who has made the mistake.

#[test]
fn every_mistake_has_its_answer() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    for kind in [
        "arguments",
        "chaining",
        "counts",
        "dtypes",
        "missing_attribute",
        "missing_impl",
        "signatures",
        "wrong_item",
    ] {
        cases.compile_fail(format!("tests/ui/{kind}/*.rs"));
    }
}
