//! Derivatives: what tch has, with gradients of the results, options, and errors that keep their type.

use gradpact::engine::Array as _;
use gradpact::{BackwardOptions, Error, GradDType, Policy, Result};
use tch::{Device, Tensor};

use crate::array::{Array, from_tch};
use crate::dtype::kind;
use crate::error::argument;
use crate::ffi;

/// Sends gradients from the roots to all leaves, where libtorch adds them to the leaves' own.
///
/// Each root comes with its seed; `None` stands for one, if the root has a single element. libtorch converts a seed to the gradient
/// dtype of its root.
///
/// # Errors
/// What a backward of gradpact reports, as it reported it; a
/// [`TorchError`](crate::TorchError) for everything that libtorch reports; [`Error::Argument`] for
/// roots and seeds that are undefined or sparse, and for the option `strict`: conversions between libtorch's own
/// nodes are its own business.
///
/// # Panics
/// Goes on with the panic of a backward.
pub fn backward(roots: &[(&Tensor, Option<&Tensor>)], options: BackwardOptions) -> Result<()> {
    check("backward", roots, options)?;
    ffi::run_backward(roots, options.retains_graph(), options.creates_graph())
}

/// The gradients of the roots with respect to `inputs`, leaves or not, in the inputs' gradient dtypes.
///
/// Nothing is accumulated in leaves. Roots and seeds as in [`backward`].
///
/// # Errors
/// As [`backward`]; also for an input that the roots do not depend on, unless the options say `allow_unused`.
///
/// # Panics
/// Goes on with the panic of a backward.
pub fn grad(
    roots: &[(&Tensor, Option<&Tensor>)],
    inputs: &[&Tensor],
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    check("grad", roots, options)?;
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    for input in inputs {
        Array::new("grad", input.shallow_clone())?;
    }
    let (retain, create) = (options.retains_graph(), options.creates_graph());
    let grads = ffi::run_grad(roots, inputs, retain, create, options.allows_unused())?;
    if !options.materializes_grads() {
        return Ok(grads);
    }
    let zeros = |(grad, input): (Option<Tensor>, &&Tensor)| match grad {
        Some(grad) => Ok(Some(grad)),
        None => zeros_for(input).map(Some),
    };
    grads.into_iter().zip(inputs).map(zeros).collect()
}

/// In which dtype a tensor's gradient arrives, as libtorch knows it; `None` if the tensor requires none.
///
/// # Errors
/// If libtorch does not say.
pub fn grad_dtype(tensor: &Tensor) -> Result<Option<GradDType>> {
    if !tensor.defined() || !tensor.requires_grad() {
        return Ok(None);
    }
    ffi::grad_dtype(tensor)
}

/// Sets the dtype in which a leaf keeps its gradient, also for graphs that exist already.
///
/// # Errors
/// If the tensor is no leaf, the dtype is not floating-point, or the leaf holds a gradient of another dtype.
pub fn set_grad_dtype(leaf: &Tensor, grad_dtype: GradDType) -> Result<()> {
    if let Some(dtype) = grad_dtype.dtype().filter(|dtype| !dtype.is_float()) {
        return Err(argument("set_grad_dtype", format!("a gradient is floating-point, {dtype} is not")));
    }
    let own = Array::new("set_grad_dtype", leaf.shallow_clone())?.dtype();
    if !own.is_float() {
        return Err(argument("set_grad_dtype", format!("a tensor of {own} has no gradient")));
    }
    require_leaf("set_grad_dtype", leaf)?;
    let present = leaf.grad();
    if let (Some(requested), true) = (grad_dtype.dtype(), present.defined())
        && let present = Array::new("set_grad_dtype", present)?.dtype()
        && present != requested
    {
        return Err(Error::GradPresent { requested, present });
    }
    ffi::set_grad_dtype(leaf, grad_dtype)
}

/// The name of the node that made a tensor, such as `SiluBackward`; `None` for a leaf.
///
/// # Errors
/// If libtorch does not say.
pub fn grad_fn_name(tensor: &Tensor) -> Result<Option<String>> {
    if tensor.defined() { ffi::grad_fn_name(tensor) } else { Ok(None) }
}

/// The libtorch in use: major, minor and patch version.
pub fn libtorch_version() -> (u32, u32, u32) {
    ffi::libtorch_version()
}

pub(crate) fn require_leaf(call: &'static str, tensor: &Tensor) -> Result<()> {
    match grad_fn_name(tensor)? {
        None => Ok(()),
        Some(name) => {
            Err(Error::NotALeaf { call, producer: format!("output {} of `{name}`", tensor.output_nr()) })
        }
    }
}

fn check(
    operation: &'static str,
    roots: &[(&Tensor, Option<&Tensor>)],
    options: BackwardOptions,
) -> Result<()> {
    if options.policy() == Policy::Strict {
        let problem =
            "libtorch's nodes convert gradients without asking: declare `policy = strict` where it matters";
        return Err(argument(operation, problem));
    }
    if roots.is_empty() {
        return Err(argument(operation, "there is nothing to differentiate: no roots were given"));
    }
    for (root, seed) in roots {
        Array::new(operation, root.shallow_clone())?;
        if let Some(seed) = seed {
            let seed = Array::new(operation, seed.shallow_clone())?;
            let dtype = seed.dtype();
            if !dtype.is_float() {
                return Err(argument(
                    operation,
                    format!("the seed gradient is {dtype}; it must be floating-point"),
                ));
            }
            if seed.size() != root.size() {
                let (got, expected) = (seed.size(), root.size());
                let problem = format!("the seed gradient has shape {got:?}, its root {expected:?}");
                return Err(argument(operation, problem));
            }
        }
    }
    Ok(())
}

fn zeros_for(input: &Tensor) -> Result<Tensor> {
    let own = (input.kind(), input.device());
    let options: (tch::Kind, Device) = match grad_dtype(input)?.and_then(GradDType::dtype) {
        Some(dtype) => (kind(dtype), own.1),
        None => own,
    };
    Tensor::f_zeros(input.size(), options).map_err(|error| from_tch(&error))
}
