//! The cases of these groups that are not replayed, and why: those that no engine of ours can express, but for what tensors of
//! libtorch can do.

use gradpact_tests::conformance::left_out;

/// Groups that are about something else: hooks, leaves of Python, `gradcheck`, creation hooks, regions, checkpoints, casts.
pub(crate) const GROUPS: [u64; 8] = [1, 2, 3, 4, 5, 8, 9, 10];

/// Beginnings of ids that are replayed here, though not on the embedded engine.
const ONLY_HERE: [&str; 5] =
    ["1.down/zeros_f32.add_(y)", "1.down/zeros_f32.copy_(y)", "5.layout/", "10.then_inplace/", "10.saved/"];

/// Reasons that are others than there.
const OWN: [(&str, &str); 2] = [
    ("10.mark_dirty/", "a Function cannot mark its inputs as changed in place"),
    ("5.device/", "tch has no `meta` device; gradients on another device need a GPU"),
];

/// Why a case is left out, if it is.
pub(crate) fn reason(id: &str) -> Option<&'static str> {
    if ONLY_HERE.iter().any(|beginning| id.starts_with(beginning)) {
        return None;
    }
    let own = OWN.iter().find(|(beginning, _)| id.starts_with(beginning)).map(|(_, reason)| *reason);
    own.or_else(|| left_out::reason(id))
}
