//! Expansions among hostile names, lints, macros and conditions. The numbers are those of the reported cases that each
//! file answers; those about wrong items and wrong styles are in `ui`.

#[test]
fn expansions_mind_their_manners() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/hygiene/pass/*.rs");
    cases.compile_fail("tests/hygiene/fail/*.rs");
}
