//! Expansions among hostile names, lints, macros and conditions. The numbers are those of the reported cases that each
//! file answers; those about wrong items and wrong styles are in `ui`, MO-04 is beside this crate in `facade`.

// What an expansion would be blamed for in a crate that is strict with itself.
#![warn(clippy::pedantic, clippy::nursery)]

mod generic;

use gradpact_tests::compiler;

#[test]
fn expansions_mind_their_manners() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/hygiene/pass/*.rs");
    if compiler::speaks_as_expected() {
        cases.compile_fail("tests/hygiene/fail/*.rs");
    }
}
