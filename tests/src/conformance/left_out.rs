//! The measured cases that are not replayed, and why. First match counts.

/// Beginnings of ids, and the reason.
pub const LEFT_OUT: [(&str, &str); 41] = [
    ("1.down/zeros_f32.add_(y)", "in-place operations: tensors do not change"),
    ("1.down/zeros_f32.copy_(y)", "in-place operations: tensors do not change"),
    ("2.attr/", "Python-only: the context has no attribute to write or read"),
    ("2.kwarg", "Python-only: does not compile"),
    ("2.not_a_dtype/", "Python-only: a declaration has a type"),
    ("2.other_dtype_for_float_output/", "dtypes that we do not have"),
    ("2.complex/", "complex dtypes"),
    ("2.slot/concrete_for_non_tensor", "Python-only: an output is a tensor"),
    ("2.slot/concrete_for_None_output", "Python-only: an output is a tensor"),
    ("2.slot/None_for_None_output", "Python-only: an output is a tensor"),
    ("2.slot/list_output", "Python-only: outputs are a list of tensors"),
    ("2.no_input_requires_grad/not_a_dtype", "Python-only: a declaration has a type"),
    ("2.no_grad/not_a_dtype", "Python-only: a declaration has a type"),
    ("2.inference_mode/not_a_dtype", "Python-only: a declaration has a type"),
    ("2.no_input_requires_grad/attr_list", "Python-only: the context has no attribute to write"),
    ("2.no_grad/attr_list", "Python-only: the context has no attribute to write"),
    ("2.inference_mode/attr_list", "Python-only: the context has no attribute to write"),
    ("2.late/", "does not compile: the context is lent to forward, mutably, and to backward, immutably"),
    ("2.outside/", "does not compile: a context cannot be made"),
    ("2.order/", "Python-only mistakes in a row: wrong kinds of argument, in-place marks"),
    ("5.kind/python_float", "Python-only: a gradient is a tensor"),
    ("5.kind/numpy", "Python-only: a gradient is a tensor"),
    ("5.kind/list", "Python-only: a gradient is a tensor"),
    ("5.count/missing_for_non_tensor_input", "an input is a tensor; what is not is a field of the struct"),
    ("5.count/None_for_non_tensor_input", "an input is a tensor; what is not is a field of the struct"),
    ("5.count/tensor_for_non_tensor_input", "an input is a tensor; what is not is a field of the struct"),
    ("5.layout/", "sparse tensors"),
    ("5.device/", "other devices than the engine's own"),
    ("5.root_gradient/python_float", "Python-only: a seed is a tensor"),
    ("6.return/tensor_hook_str", "Python-only: a hook returns gradients"),
    ("6.return/prehook_not_tuple", "Python-only: a hook returns gradients"),
    ("6.return/post_accumulate_returns_value", "does not compile: that hook returns nothing"),
    ("7.complex_grad_dtype_backward", "complex dtypes"),
    ("7.del_grad_dtype_segfaults", "Python-only: attributes cannot be deleted"),
    ("9.is_grads_batched", "functorch"),
    ("10.mark_dirty/", "in-place operations: tensors do not change"),
    ("10.then_inplace/", "in-place operations: tensors do not change"),
    ("10.saved/", "in-place operations: tensors do not change"),
    ("14.", "functorch and the compiler"),
    ("15.anomaly/", "there is no anomaly mode"),
    ("15.absent_apis", "Python-only: which attributes PyTorch lacks"),
];

/// Cases within a replayed family, by what their id contains.
pub const PARTS: [(&str, &str); 3] = [
    ("_materialize_non_diff_grads", "a private attribute of PyTorch's context"),
    ("complex", "complex dtypes"),
    ("c128", "complex dtypes"),
];

/// Why a case is left out, if it is.
pub fn reason(id: &str) -> Option<&'static str> {
    let beginning = LEFT_OUT.iter().find(|(beginning, _)| id.starts_with(beginning));
    beginning.or_else(|| PARTS.iter().find(|(part, _)| id.contains(part))).map(|(_, reason)| *reason)
}
