//! What our errors say, for each measured case that fails here: the variant, and what its text must name.

use super::outcome::Failed;

/// Whether the error of a case is the one that it must be.
///
/// # Errors
/// What it must be, and is not.
pub fn check(id: &str, failed: &Failed) -> Result<(), String> {
    let Some((kind, words)) = of(id) else {
        return Err(format!("{id}: no entry in `messages` for {failed:?}"));
    };
    let missing: Vec<_> = words.iter().filter(|word| !failed.message.contains(*word)).collect();
    if failed.kind != kind || !missing.is_empty() {
        return Err(format!("{id}: must be {kind} and say {missing:?}: {failed:?}"));
    }
    Ok(())
}

/// The variant of the error of a case, and words of its text: Function, position, expected and got.
fn of(id: &str) -> Option<(&'static str, &'static [&'static str])> {
    let (kind, words): (_, &[_]) = match id {
        "2.count/too_few" => ("DeclarationCount", &["`F`", "1 declarations", "2 outputs"]),
        "2.count/too_many" | "2.setup_context/wrong_count" => {
            ("DeclarationCount", &["`F`", "2 declarations", "1 outputs"])
        }
        "2.count/zero_declarations" => ("DeclarationCount", &["`F`", "0 declarations", "1 outputs"]),
        _ if id.starts_with("2.") && id.ends_with("/wrong_count") => {
            ("DeclarationCount", &["`F`", "2 declarations", "1 outputs"])
        }
        _ if id.starts_with("2.") && id.contains("twice") => {
            ("CalledTwice", &["`set_output_grad_dtype`", "`F`", "twice"])
        }
        "2.slot/own_dtype_for_int_output" => {
            ("DeclaredNotFloat", &["output 1 of `F`", "i64", "f16, bf16, f32"])
        }
        "2.nondiff_dtype_for_float_output/int64" => {
            ("DeclaredNotFloat", &["output 0 of `F`", "i64", "f16, bf16"])
        }
        "2.nondiff_dtype_for_float_output/uint8" => {
            ("DeclaredNotFloat", &["output 0 of `F`", "u8", "f16, bf16"])
        }
        "2.nondiff_dtype_for_float_output/bool" => {
            ("DeclaredNotFloat", &["output 0 of `F`", "bool", "f16, bf16"])
        }
        _ if id.ends_with("/int_dtype") || id.ends_with("_float_output/int32") => {
            ("DeclaredNotFloat", &["output 0 of `F`", "i32", "f16, bf16, f32"])
        }
        _ if id.contains("for_mark_non_differentiable") || id.ends_with("/nondiff_slot") => {
            ("DeclaredNonDifferentiable", &["output 1 of `F`", "`Any`"])
        }
        _ if id.starts_with("2.int_gradient") => ("GradientNotFloat", &["seed", "i64", "f16, bf16, f32"]),
        _ if id.starts_with("2.bool_gradient") => ("GradientNotFloat", &["seed", "bool", "f16, bf16, f32"]),
        _ if id.starts_with("5.dtype/int32") => {
            ("GradientNotFloat", &["input 0 of `F`", "i32", "f16, bf16, f32"])
        }
        _ if id.starts_with("5.dtype/bool") => {
            ("GradientNotFloat", &["input 0 of `F`", "bool", "f16, bf16, f32"])
        }
        "5.count/empty_tuple" => ("GradientCount", &["`F`", "0 gradients", "expected 1"]),
        "5.count/extra_tensor" => ("GradientCount", &["`F`", "2 gradients", "expected 1"]),
        "5.root_gradient/None" => ("SeedMissing", &["[2]", "output 0 of `F`"]),
        "5.root_gradient/()" => {
            ("Gradient", &["seed", "wrong shape for output 0 of `F`", "expected [2], got []"])
        }
        "5.root_gradient/(1,)" => ("Gradient", &["wrong shape for output 0 of `F`", "expected [2], got [1]"]),
        "5.root_gradient/(3,)" => ("Gradient", &["wrong shape for output 0 of `F`", "expected [2], got [3]"]),
        "5.root_gradient/(3,2)" => {
            ("Gradient", &["wrong shape for output 0 of `F`", "expected [2], got [3, 2]"])
        }
        "5.downstream_shape/(3, 2)" => (
            "Gradient",
            &["input 0 of `Giver`", "wrong shape and dtype for output 0 of `F`", "f32 [2], got f16 [3, 2]"],
        ),
        "5.downstream_shape/(3,)" => (
            "Gradient",
            &["input 0 of `Giver`", "wrong shape and dtype for output 0 of `F`", "f32 [2], got f16 [3]"],
        ),
        _ if id.starts_with("5.shape/") => {
            ("Gradient", &["input 0 of `F`", "wrong shape for a leaf", "expected ["])
        }
        "5.order/sum_to_runs_in_f16_before_cast_to_f32" => {
            ("Gradient", &["input 0 of `F`", "wrong shape and dtype for a leaf", "f32 [2], got f16 [3, 2]"])
        }
        "6.return/tensor_hook_other_shape" => ("HookChanged", &["tensor hook of `F`", "[1]", "[2]"]),
        "6.return/tensor_hook_f16" => ("HookChanged", &["tensor hook of `F`", "expected f32", "got f16"]),
        "6.return/tensor_hook_bf16" => ("HookChanged", &["tensor hook of `F`", "expected f32", "got bf16"]),
        _ if id.starts_with("6.return/tensor_hook_f64") => {
            ("HookChanged", &["tensor hook of `F`", "expected f32", "got f64"])
        }
        "6.return/leaf_hook_f64" => ("HookChanged", &["tensor hook of", "expected f32", "got f64"]),
        "6.return/prehook_f64" => ("HookChanged", &["prehook of `F`", "expected f32", "got f64"]),
        "6.return/posthook_f64" => ("HookChanged", &["posthook of `F`", "expected f32", "got f64"]),
        "6.return/prehook_wrong_count" => {
            ("HookChanged", &["prehook of `F`", "expected 1 gradients", "got 2"])
        }
        "6.return/posthook_wrong_count" => {
            ("HookChanged", &["posthook of `F`", "expected 1 gradients", "got 2"])
        }
        "6.post_accumulate_on_non_leaf" => {
            ("NotALeaf", &["`register_post_accumulate_grad_hook`", "output 0 of `F`"])
        }
        "7.non_leaf" => ("NotALeaf", &["`set_grad_dtype`", "output 0 of `Add`", "`with_grad_dtype`"]),
        "7.int_grad_dtype_backward" => ("DType", &["`set_grad_dtype`", "floating-point", "i32"]),
        _ if id.starts_with("7.setter/") => return setter(&id["7.setter/".len()..]),
        _ if id.starts_with("8.once_differentiable/") => {
            ("DifferentiableOnce", &["`F` is differentiable only once", "second derivative"])
        }
        "12.gradcheck/backward_returns_f32_for_f64_input" => {
            ("Custom", &["gradcheck of `F` failed", "returned f32 for input 0 of `F`, whose gradient is f64"])
        }
        "12.gradcheck/leaf_grad_dtype_f32_on_f64_leaf" => {
            ("Custom", &["gradcheck of `F` failed", "the gradient of input 0 of `F` is kept in f32"])
        }
        _ if id.starts_with("12.gradcheck/") => {
            ("Custom", &["gradcheck of `F` failed", "the gradient of output 0 of `F` is kept in"])
        }
        "10.retain/builtin_twice" => ("SavedFreed", &["`Mul`", "`retain_graph`"]),
        _ if id.starts_with("10.retain/") => ("SavedFreed", &["backward of `F`", "`retain_graph`"]),
        "11.node_creation_hook/basics/hook raises" => ("Custom", &["boom"]),
        "11.node_creation_hook/basics/hook creates a node" => {
            ("NodeInCreationHook", &["`Mul`", "only observe the node"])
        }
        "15.exception_in_backward" => ("Custom", &["backward of `F`", "mine"]),
        _ => return None,
    };
    Some((kind, words))
}

/// The errors of the attempts of `7.setter`.
fn setter(attempt: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match attempt {
        "set without requires_grad" | "int tensor set f32" => {
            ("NotALeaf", &["`set_grad_dtype`", "an untracked tensor", "`requiring_grad_in`"])
        }
        "set int32" => ("DType", &["`set_grad_dtype`", "floating-point", "got i32"]),
        "f16 x: .grad = f32" => (
            "Gradient",
            &["`set_grad`", "wrong dtype for a leaf", "expected f16, got f32", "`set_grad_dtype`"],
        ),
        "then .grad = f16" => (
            "Gradient",
            &["`set_grad`", "wrong dtype for a leaf", "expected f32, got f16", "`set_grad_dtype`"],
        ),
        "existing f32 grad: grad_dtype = f16" => {
            ("GradPresent", &["gradients in f16", "the leaf", "gradient in f32", "`zero_grad`"])
        }
        // Ours still holds the gradient in f64 that came before the integer one.
        "existing int64 grad: grad_dtype = f16" => {
            ("GradPresent", &["gradients in f16", "the leaf", "gradient in f64", "`zero_grad`"])
        }
        "None: .grad = int64" | ".grad = int64" => {
            ("GradientNotFloat", &["`set_grad`", "i64", "floating-point (f16, bf16, f32"])
        }
        ".grad wrong shape" => {
            ("Gradient", &["`set_grad`", "wrong shape for a leaf", "expected [2], got [3]"])
        }
        ".grad = itself" => ("OwnGrad", &["leaf", "its own gradient", "`detach`"]),
        _ => return None,
    })
}
