//! What errors say, where libtorch finds them or the host has words of its own. All others are those of the embedded engine.

use gradpact_tests::conformance::messages;
use gradpact_tests::conformance::outcome::Failed;

/// Whether the error of a case is the one that it must be.
pub(crate) fn check(id: &str, failed: &Failed) -> Result<(), String> {
    match words(id) {
        None => messages::check(id, failed),
        Some(words) => {
            let missing: Vec<_> = words.iter().filter(|word| !failed.message.contains(*word)).collect();
            if missing.is_empty() { Ok(()) } else { Err(format!("{id}: must say {missing:?}: {failed:?}")) }
        }
    }
}

/// Words of the text of an error that is not worded as on the embedded engine.
fn words(id: &str) -> Option<&'static [&'static str]> {
    Some(match id {
        "2.slot/concrete_for_int_output" => &["`F`", "output 1 is i64", "no integer tensor a gradient"],
        _ if id.starts_with("2.int_gradient/") => &["seed gradient is i64", "floating-point"],
        _ if id.starts_with("2.bool_gradient/") => &["seed gradient is bool", "floating-point"],
        // libtorch cannot add two gradients of 8 bits.
        "3.e5m2_twice/None" => &["not implemented for 'Float8_e5m2'"],
        _ if id.starts_with("3.fp8_output_two_consumers/") => &["not implemented for 'Float8_"],
        "5.root_gradient/None" => &["only for scalar outputs"],
        _ if id.starts_with("5.layout/") => &["backward of `F`", "not strided", "to_dense"],
        _ if id.starts_with("5.root_gradient/") => &["seed gradient has shape [", "its root [2]"],
        // Of a wrong shape and a wrong dtype only the shape is told: a float of another dtype is converted.
        "5.order/sum_to_runs_in_f16_before_cast_to_f32" => {
            &["input 0 of `F`", "wrong shape for a leaf", "expected [2], got [3, 2]"]
        }
        _ if id.starts_with("5.downstream_shape/") => {
            &["input 0 of `Giver`", "wrong shape for output 0 of `F`", "expected [2], got [3"]
        }
        "10.retain/builtin_twice" => &["a second time", "retain_graph=True"],
        "10.saved/input_modified_in_place" => &["backward of `F`", "modified by an inplace operation"],
        _ if id.starts_with("10.then_inplace/") => &["is a view and is being modified inplace"],
        _ => return None,
    })
}
