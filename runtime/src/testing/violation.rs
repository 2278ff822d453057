//! What can be wrong with a Function although its numbers are right.

use crate::dtype::DType;
use crate::error::Place;
use crate::shape::Shape;

/// A breach of contract: something that happened to a gradient, or that a Function did, which its numbers need not show.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Backward received a gradient in another dtype than declared.
    #[error("backward received {got} for {place}, whose gradient is declared {declared}")]
    ReceivedDType {
        /// The output.
        place: Place,
        /// The declared dtype, or that of what was sent if any is taken.
        declared: DType,
        /// What came.
        got: DType,
    },
    /// Backward received a gradient of another shape than the output has.
    #[error("backward received shape {got} for {place}, which has shape {expected}")]
    ReceivedShape {
        /// The output.
        place: Place,
        /// The output's shape.
        expected: Shape,
        /// What came.
        got: Shape,
    },
    /// Backward returned a gradient in another dtype than the input's, which the engine converts silently.
    #[error(
        "backward returned {got} for {place}, whose gradient is {expected}: {}",
        if expected.fits_in(*got) { "the engine rounds it" } else { "precision is lost" }
    )]
    ReturnedDType {
        /// The input.
        place: Place,
        /// The input's gradient dtype.
        expected: DType,
        /// What was returned.
        got: DType,
    },
    /// Backward returned a gradient of another shape than the input has.
    #[error("backward returned shape {got} for {place}, which has shape {expected}")]
    ReturnedShape {
        /// The input.
        place: Place,
        /// The input's shape.
        expected: Shape,
        /// What was returned.
        got: Shape,
    },
    /// Backward returned `None` for an input that needs a gradient, while all outputs had one.
    #[error("backward returned no gradient for {0}, which needs one")]
    ReturnedNothing(Place),
    /// A gradient is held in a dtype that is narrower than the values it belongs to.
    #[error("the gradient of {place} is kept in {gradient}, which cannot hold every value of its {storage}")]
    Narrow {
        /// The input or output.
        place: Place,
        /// The dtype of the values.
        storage: DType,
        /// The dtype of the gradient.
        gradient: DType,
    },
    /// A gradient reaches an input with less precision than the dtypes at both ends have, or not at all; or backward is not
    /// linear: it treats small or negative gradients unlike others.
    #[error(
        "precision is lost between the gradient of output {output} and that of input {input} ({dtype} on both ends, \
         or wider), or backward is not linear: scaled by {scale:e} it should be {expected:e}, and is {got:e}"
    )]
    Precision {
        /// Position of the output.
        output: usize,
        /// Position of the input.
        input: usize,
        /// The coarser of both gradient dtypes.
        dtype: DType,
        /// The factor on the output's gradient.
        scale: f64,
        /// The factor times the unscaled result.
        expected: f64,
        /// What came.
        got: f64,
    },
    /// An output has other dtypes than expected.
    #[error("{place} is stored in {} with gradient {}, expected {} with gradient {}", got.0, got.1, expected.0, expected.1)]
    OutputDType {
        /// The output.
        place: Place,
        /// Storage and gradient dtype, as words.
        expected: (DType, String),
        /// Storage and gradient dtype, as words.
        got: (DType, String),
    },
    /// Another number of outputs than expected.
    #[error("{got} outputs, expected {expected}")]
    OutputCount {
        /// As said by [`Gradcheck::expecting`](super::Gradcheck::expecting).
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// Two runs on the same inputs gave different results.
    #[error("two runs on the same inputs give different {0}")]
    NotDeterministic(String),
    /// An undefined gradient has another effect than zeros.
    #[error("{case}: {problem}")]
    Undefined {
        /// Which gradients were undefined.
        case: String,
        /// What happened.
        problem: String,
    },
    /// The gradient of an input depends on which others need one.
    #[error("if {place} alone needs a gradient: {problem}")]
    Alone {
        /// The input.
        place: Place,
        /// What happened.
        problem: String,
    },
    /// Strided inputs or gradients are not treated as dense ones.
    #[error("with {case}: {problem}")]
    Strided {
        /// What is strided.
        case: String,
        /// What happened.
        problem: String,
    },
    /// A backward that failed; other violations say why.
    #[error("the backward ended in an error: {0}")]
    Failed(String),
}
