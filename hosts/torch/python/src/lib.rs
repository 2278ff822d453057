//! An extension module for Python: Functions written in Rust, on `torch.Tensor`.
//!
//! A Function is applied to tensors of Python and gives tensors of Python. Its node is in the graph that they have anyway, between
//! the nodes of PyTorch and those of `torch.autograd.Function`s, and its declared gradient dtype is kept by the same engine.

mod functions;
mod received;
mod tensor;
mod testing;

use pyo3::prelude::*;

/// What `import gradpact_torch` finds, after it has imported torch.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<received::Received>()?;
    module.add_function(wrap_pyfunction!(functions::silu, module)?)?;
    module.add_function(wrap_pyfunction!(functions::linear, module)?)?;
    module.add_function(wrap_pyfunction!(functions::narrow, module)?)?;
    module.add_function(wrap_pyfunction!(functions::widen, module)?)?;
    module.add_function(wrap_pyfunction!(functions::grad_dtype, module)?)?;

    let testing = PyModule::new(module.py(), "testing")?;
    testing.add_function(wrap_pyfunction!(testing::scale, &testing)?)?;
    testing.add_function(wrap_pyfunction!(testing::split, &testing)?)?;
    testing.add_function(wrap_pyfunction!(testing::fail, &testing)?)?;
    testing.add_function(wrap_pyfunction!(testing::backward, &testing)?)?;
    module.add_submodule(&testing)
}
