//! Tensors of Python as tensors of the engine, and errors as exceptions.

use gradpact_torch::prelude::*;
use gradpact_torch::{FromTch, Torch};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3_tch::PyTensor;

/// Applies a Function to tensors of Python.
///
/// The interpreter's lock is released meanwhile, as PyTorch does in its own operations: other threads run on, and libtorch may
/// call Python where something in Python looks on (hooks on nodes or on saved tensors).
pub(crate) fn apply<F: Function<Torch>>(
    py: Python<'_>,
    function: F,
    inputs: Vec<Option<PyTensor>>,
) -> PyResult<Vec<PyTensor>> {
    let inputs = inputs.into_iter().map(|input| input.map(|input| input.0)).collect::<Vec<_>>();
    released(py, move || {
        let inputs = inputs.into_iter().map(|input| input.map(DynTensor::from_tch).transpose());
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let inputs: Vec<Option<&DynTensor>> = inputs.iter().map(Option::as_ref).collect();
        let outputs = gradpact::function::apply_optional(function, &inputs)?;
        Ok(outputs.into_iter().map(|output| PyTensor(output.into_tch())).collect())
    })
}

/// The same for a Function with one output.
pub(crate) fn apply_one<F: Function<Torch>>(
    py: Python<'_>,
    function: F,
    inputs: Vec<Option<PyTensor>>,
) -> PyResult<PyTensor> {
    let output = apply(py, function, inputs)?.into_iter().next();
    output.ok_or_else(|| PyRuntimeError::new_err("the Function has no output"))
}

/// Runs `body` without the interpreter's lock. An error becomes a `RuntimeError` with its text, as libtorch makes one of an error in
/// a backward; a panic that it lets through becomes pyo3's `PanicException`.
pub(crate) fn released<T: Send>(py: Python<'_>, body: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let result = py.allow_threads(body);
    // What libtorch called in Python meanwhile may have failed. Its exception waits in the interpreter, and is more than the text of
    // the error. `torch.utils.checkpoint` even relies on it to end a forward early.
    PyErr::take(py).map_or(Ok(()), Err)?;
    result.map_err(exception)
}

#[allow(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    // tch adds the addresses of libtorch's functions, which PyTorch does not show.
    let end = text.find("\nException raised from").unwrap_or(text.len());
    PyRuntimeError::new_err(text[..end].to_owned())
}

/// What torch calls a floating-point dtype.
pub(crate) fn name_in_python(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        other => other.as_str(),
    }
}
