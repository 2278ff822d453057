//! The Functions that the cases are made of, on the embedded engine.

use gradpact::{DType, DynTensor, Shape};
pub(crate) use gradpact_tests::conformance::probe::Log;
use gradpact_tests::conformance::{Embedded, Subject as _, probe};

/// A Function made of closures.
pub(crate) type Probe = probe::Probe<Embedded>;

/// A leaf of ones.
pub(crate) fn ones(dtype: DType, shape: impl Into<Shape>) -> DynTensor {
    Embedded::ones(dtype, shape)
}
