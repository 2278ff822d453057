//! Errors of libtorch among those of gradpact.

use gradpact::Error;

use crate::ffi::Exception;

/// An exception of libtorch, with its text. It is at the root of a [`gradpact::Error`]: `error.downcast_ref::<TorchError>()`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("libtorch: {message}")]
pub struct TorchError {
    /// What libtorch says, without its backtrace.
    pub message: String,
    /// An exception that is none of libtorch's own, such as one of Python: from a backward it goes on as what it is.
    pub(crate) exception: Option<Exception>,
}

impl TorchError {
    /// What libtorch says in `text`, up to the backtrace that it may end with.
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        let message = text.as_ref().split("\nException raised from").next().unwrap_or_default().to_owned();
        Self { message, exception: None }
    }
}

impl From<TorchError> for Error {
    fn from(error: TorchError) -> Self {
        Self::custom(error)
    }
}

/// The error of a call that `problem` makes impossible.
pub(crate) fn argument(operation: &'static str, problem: impl Into<String>) -> Error {
    Error::Argument { operation, problem: problem.into() }
}
