//! The one error type: which Function, which position, what was expected, what came.

mod mismatch;
mod place;

pub use mismatch::{GradientMismatch, GradientSender};
pub use place::{Phase, Place, Side};

use crate::dtype::DType;
use crate::shape::Shape;

/// The result of everything fallible in this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that can go wrong.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[repr(u64)]
pub enum Error {
    // What a gradient must look like.
    /// A gradient whose shape, or under the strict policy whose dtype, is not the receiver's.
    #[error("{0}")]
    Gradient(Box<GradientMismatch>),
    /// A gradient that is not floating-point.
    #[error("{sender} is {got}; a gradient must be floating-point (f16, bf16, f32, f64, f8e4m3 or f8e5m2)")]
    GradientNotFloat {
        /// Who sent it.
        sender: Box<GradientSender>,
        /// Its dtype.
        got: DType,
    },
    /// `backward` returned another number of gradients than `forward` has inputs.
    #[error("backward of `{function}` returned {got} gradients, expected {expected}: one for each input")]
    GradientCount {
        /// The Function's name.
        function: String,
        /// How many inputs it has.
        expected: usize,
        /// How many gradients came.
        got: usize,
    },
    /// A gradient for an input that cannot have one (not given, or not differentiable).
    #[error("backward returned a gradient for {0}, which was not given: return `None` there")]
    GradientForAbsentInput(Box<Place>),

    // Declarations.
    /// Another number of declarations than outputs.
    #[error(
        "set_output_grad_dtype of `{function}`: {declared} declarations for {outputs} outputs; \
             declare one for each output"
    )]
    DeclarationCount {
        /// The Function's name.
        function: String,
        /// How many declarations were made.
        declared: usize,
        /// How many outputs `forward` returned.
        outputs: usize,
    },
    /// A call that may be made only once in a forward.
    #[error("`{call}` was called twice in forward of `{function}`; call it once")]
    CalledTwice {
        /// The Function's name.
        function: String,
        /// The method of `Context`.
        call: &'static str,
    },
    /// A declaration in the formulas of a Function that the attribute declares.
    #[error(
        "forward of `{function}` calls `{call}`, which `#[autograd_function]` has settled: \
             change its `{}` instead, or implement `Function` by hand",
        settled_by(call)
    )]
    DeclaredByAttribute {
        /// The Function's name.
        function: String,
        /// The method of `Context`.
        call: &'static str,
    },
    /// A gradient dtype that is not floating-point.
    #[error(
        "{place} declares gradients of dtype {got}; a gradient must be floating-point \
             (f16, bf16, f32, f64, f8e4m3 or f8e5m2)"
    )]
    DeclaredNotFloat {
        /// The output.
        place: Box<Place>,
        /// The declared dtype.
        got: DType,
    },
    /// A dtype declared for an output that has no gradient.
    #[error(
        "{0} was marked non-differentiable, yet a gradient dtype is declared for it: declare `Any` there"
    )]
    DeclaredNonDifferentiable(Box<Place>),
    /// An output position that does not exist.
    #[error("`{call}` names {place}, which has {outputs} outputs")]
    NoSuchOutput {
        /// The method of `Context`.
        call: &'static str,
        /// The position.
        place: Box<Place>,
        /// How many outputs there are.
        outputs: usize,
    },

    // Inputs, outputs and saved tensors of a Function.
    /// A tensor of another dtype than its position is declared with.
    #[error("{place} must be {expected}, got {got}")]
    ValueDType {
        /// The position.
        place: Box<Place>,
        /// The declared dtype.
        expected: DType,
        /// The tensor's dtype.
        got: DType,
    },
    /// Another number of inputs or outputs than declared.
    #[error("`{function}` must have {expected} {what}, got {got}")]
    ValueCount {
        /// The Function's name.
        function: String,
        /// "inputs", "outputs" or "saved tensors".
        what: &'static str,
        /// The declared number.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// An input that is not there: not given, or past the last one.
    #[error("{0} was not given")]
    AbsentInput(Box<Place>),
    /// A gradient that is not there: undefined, or past the last one.
    #[error("no gradient arrived for {0}")]
    AbsentGradient(Box<Place>),
    /// Another number of saved tensors asked for than saved.
    #[error(
        "backward of `{function}` asks for {asked} saved tensor(s), its forward saved {saved}: \
             `ctx.saved` takes all that `ctx.save_for_backward` was given, in that order"
    )]
    SavedCount {
        /// The Function's name.
        function: String,
        /// How many backward asks for.
        asked: usize,
        /// How many forward saved.
        saved: usize,
    },
    /// Saved tensors asked for after a backward freed them.
    #[error(
        "the saved tensors of `{0}` were freed by an earlier backward; \
             set `retain_graph` on that one to go through the graph again"
    )]
    SavedFreed(String),
    /// A saved tensor that does not exist, or of another dtype.
    #[error("saved tensor {position} of `{function}`: expected {expected}, got {got}")]
    Saved {
        /// The Function's name.
        function: String,
        /// Counted from zero.
        position: usize,
        /// What was asked for.
        expected: String,
        /// What is there.
        got: String,
    },

    // The graph.
    /// `backward` or `grad` from a tensor without a graph.
    #[error("there is nothing to differentiate: the tensor {0}")]
    NoGraph(String),
    /// A gradient with respect to a tensor that does not influence the outputs.
    #[error(
        "input {position} of `grad` does not influence the outputs{}; \
             set `allow_unused` to get `None` for it",
        cut_note(cuts)
    )]
    Unreachable {
        /// Counted from zero.
        position: usize,
        /// Where the graph of the outputs was cut, and where a backward returned `None`.
        cuts: Vec<String>,
    },
    /// A gradient with respect to a tensor that cannot have one.
    #[error("input {position} of `grad` cannot have a gradient: {reason}")]
    NotDifferentiable {
        /// Counted from zero.
        position: usize,
        /// Its dtype, or that it does not require one.
        reason: String,
    },
    /// `backward` from a tensor with several elements, without a seed.
    #[error(
        "backward without a seed starts at a scalar, got shape {shape} ({place}): \
             give the gradient of each element with `backward_with`, or reduce to a scalar first"
    )]
    SeedMissing {
        /// The tensor's shape.
        shape: Shape,
        /// The Function that made it.
        place: String,
    },
    /// Another number of seeds than roots.
    #[error("{got} seed gradients for {expected} outputs")]
    SeedCount {
        /// How many outputs.
        expected: usize,
        /// How many seeds.
        got: usize,
    },
    /// Only leaves can do this.
    #[error("`{call}` is for leaves; this tensor is {producer}: {}", instead_of(call))]
    NotALeaf {
        /// The method.
        call: &'static str,
        /// The output of a Function that it is.
        producer: String,
    },
    /// A gradient dtype set on a leaf that holds a gradient of another dtype.
    #[error(
        "cannot keep gradients in {requested}: the leaf holds a gradient in {present}; forget that first, with `zero_grad` or `set_grad(None)`"
    )]
    GradPresent {
        /// The gradient dtype asked for.
        requested: DType,
        /// The dtype of the gradient that is there.
        present: DType,
    },
    /// A leaf's gradient replaced again and again by a hook that runs while a backward adds to it.
    #[error(
        "a node creation hook kept replacing the gradient of a leaf that a backward was adding to: a hook may only observe \
             the node it is shown; assign gradients before or after the backward"
    )]
    GradReplaced,
    /// A leaf given to itself as its gradient.
    #[error("a leaf cannot be its own gradient: give `set_grad` another tensor, or a `detach`ed one")]
    OwnGrad,
    /// A checkpoint that saved another number of tensors when it was recomputed.
    #[error(
        "the recomputed region saved {second} tensors, the first run {first}: the region of a `checkpoint` must do \
             the same each time"
    )]
    Recomputed {
        /// How many the first run saved.
        first: usize,
        /// How many the recomputation saved.
        second: usize,
    },
    /// A gradient that flows into a value which was saved but is neither input nor output.
    #[error(
        "`{0}` saved a value that is neither its input nor its output, so the derivative of its gradient \
             with respect to that value is unknown: save inputs or outputs and recompute the value in backward, \
             or return it as an output"
    )]
    SavedIntermediate(String),

    /// A gradient that flows into the result of a backward which is marked as differentiable once.
    #[error(
        "`{0}` is differentiable only once (`once`, `mark_once_differentiable`), and a second derivative goes through \
             its backward: remove the mark, if backward consists of recorded operations"
    )]
    DifferentiableOnce(String),
    /// A backward asked of a Function that has none.
    #[error("`{0}` has no backward: its attribute says `backward = none`")]
    NoBackward(String),

    /// A hook that returned a gradient of another dtype or shape than it was given.
    #[error("a {kind} of `{function}` changed the gradient: expected {expected}, got {got}")]
    HookChanged {
        /// "tensor hook", "prehook" or "posthook".
        kind: &'static str,
        /// The Function of the node.
        function: String,
        /// What it was given.
        expected: String,
        /// What it returned.
        got: String,
    },

    /// A node created by a hook that is being shown another one.
    #[error("a node creation hook created a node (`{0}`); it may only observe the node it is shown")]
    NodeInCreationHook(String),

    /// An audit that is not as a test expects it; the text has the rows.
    #[error("{0}")]
    Audit(String),

    // User code.
    /// An error inside `forward` or `backward` of a Function.
    #[error("in {phase} of `{function}`: {source}")]
    InFunction {
        /// The Function's name.
        function: String,
        /// Forward or backward.
        phase: Phase,
        /// What it returned.
        #[source]
        source: Box<Error>,
    },
    /// A panic inside `forward` or `backward` of a Function.
    #[error("{phase} of `{function}` panicked: {message}")]
    Panicked {
        /// The Function's name.
        function: String,
        /// Forward or backward.
        phase: Phase,
        /// The panic's message.
        message: String,
    },
    /// An error of the user's own; made by [`Error::custom`].
    #[error("{0}")]
    Custom(#[source] Box<dyn core::error::Error + Send + Sync>),

    // Tensors and operations.
    /// Two tensors whose dtypes an operation cannot combine, or a tensor it does not take.
    #[error("`{operation}` expects {expected}, got {got}")]
    DType {
        /// The operation.
        operation: &'static str,
        /// What it takes.
        expected: String,
        /// The dtype that came.
        got: DType,
    },
    /// Shapes that an operation cannot combine.
    #[error("`{operation}`: {problem}")]
    Shape {
        /// The operation.
        operation: &'static str,
        /// What does not fit, with the shapes.
        problem: String,
    },
    /// A typed view of a tensor whose dtypes are others.
    #[error("expected a tensor of {what} {expected}, got {got}")]
    TypedView {
        /// "storage dtype" or "gradient dtype".
        what: &'static str,
        /// What the type says.
        expected: String,
        /// What the tensor has.
        got: String,
    },
    /// More elements than can be addressed.
    #[error("a tensor of shape {shape} has too many elements")]
    ShapeOverflow {
        /// The shape.
        shape: Shape,
    },
    /// Data whose length is not that of the shape.
    #[error("shape {shape} holds {expected} elements, got {got}")]
    Length {
        /// The shape.
        shape: Shape,
        /// Its number of elements.
        expected: usize,
        /// The data's length.
        got: usize,
    },
    /// An axis that a shape does not have.
    #[error("`{operation}`: axis {axis} is out of range for shape {shape}")]
    AxisOutOfRange {
        /// The operation.
        operation: &'static str,
        /// As given.
        axis: isize,
        /// The tensor's shape.
        shape: Shape,
    },
    /// An index past the end.
    #[error("`{operation}`: index {index} is out of range for extent {extent} of shape {shape}")]
    IndexOutOfRange {
        /// The operation.
        operation: &'static str,
        /// As given.
        index: i64,
        /// The extent it indexes.
        extent: usize,
        /// The indexed shape.
        shape: Shape,
    },
    /// A parameter that an optimizer, or what works on its parameters, cannot take.
    #[error("`{operation}`: parameter {position}: expected {expected}, got {got}")]
    Parameter {
        /// The call.
        operation: &'static str,
        /// Counted from zero.
        position: usize,
        /// What it takes.
        expected: String,
        /// What came.
        got: String,
    },
    /// An entry of a file that does not fit what it is loaded into.
    #[error("`{operation}`: entry `{entry}`: expected {expected}, got {got}")]
    Entry {
        /// The call.
        operation: &'static str,
        /// The entry's name.
        entry: String,
        /// What is asked for.
        expected: String,
        /// What is there.
        got: String,
    },
    /// An argument that is not a tensor and makes no sense.
    #[error("`{operation}`: {problem}")]
    Argument {
        /// The operation.
        operation: &'static str,
        /// What is wrong, with the value.
        problem: String,
    },
}

/// The key of the attribute that makes a declaration.
fn settled_by(call: &str) -> &'static str {
    match call {
        "set_policy" => "policy = …",
        "set_materialize_grads" => "materialize = …",
        "mark_once_differentiable" => "once",
        _ => "grad = …",
    }
}

/// What to do with a tensor that is no leaf.
fn instead_of(call: &str) -> &'static str {
    match call {
        "set_grad_dtype" | "reset_grad_dtype" => {
            "make a leaf with `requiring_grad_in`, or give a result another gradient dtype with `with_grad_dtype`"
        }
        "set_grad" => {
            "make a leaf with `requiring_grad`, or change a gradient on its way with `register_hook`"
        }
        _ => "`register_hook` takes every tracked tensor, `requiring_grad` makes a leaf",
    }
}

fn cut_note(cuts: &[String]) -> String {
    if cuts.is_empty() { String::new() } else { format!(" (their graph was cut: {})", cuts.join(", ")) }
}

/// The same text as [`Display`](core::fmt::Display), so that `fn main() -> Result<()>` ends with it.
impl core::fmt::Debug for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Wraps an error of the user's own, to be returned from `forward` or `backward`.
    pub fn custom(error: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> Self {
        Self::Custom(error.into())
    }

    /// The innermost error, with the Functions that it passed through peeled off.
    pub fn root(&self) -> &Self {
        let mut error = self;
        while let Self::InFunction { source, .. } = error {
            error = source;
        }
        error
    }

    /// The user's own error of type `T`, if that is what is at the root.
    pub fn downcast_ref<T: core::error::Error + 'static>(&self) -> Option<&T> {
        match self.root() {
            Self::Custom(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// This error, said to come from `function`, unless it names a Function already.
    #[cold]
    pub(crate) fn inside(self, function: &str, phase: Phase) -> Self {
        Self::InFunction { function: function.to_owned(), phase, source: Box::new(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_small_enough_to_return_by_value() {
        assert!(size_of::<Error>() <= 104, "{}", size_of::<Error>());
    }
}
