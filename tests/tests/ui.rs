//! What the compiler says to each mistake that the attribute and the typed layer answer for, word for word.
//!
//! A folder holds one kind of mistake, a file one mistake, and each folder's `many.rs` several, all of which are reported.
//! `TRYBUILD=overwrite` writes the answers anew: read them as someone who has made the mistake.

use gradpact_tests::compiler;

/// Answered by the attribute alone.
const BY_THE_ATTRIBUTE: [&str; 5] = ["arguments", "counts", "dtypes", "keys", "wrong_item"];

/// Answered by the compiler, with the names and notes of the runtime's traits.
const BY_THE_COMPILER: [&str; 6] =
    ["chaining", "forward_only", "missing_attribute", "missing_bound", "missing_impl", "signatures"];

#[test]
fn every_mistake_has_its_answer() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    for kind in BY_THE_ATTRIBUTE {
        cases.compile_fail(format!("tests/ui/{kind}/*.rs"));
    }
    if compiler::speaks_as_expected() {
        for kind in BY_THE_COMPILER {
            cases.compile_fail(format!("tests/ui/{kind}/*.rs"));
        }
    }
}
