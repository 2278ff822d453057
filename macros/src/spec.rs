//! What a correct attribute says. Built by `check` alone, read by `expand`: no illegal combination gets this far.

use proc_macro2::{Ident, Span};

use crate::dtype::Dtype;

/// The contract of one Function.
pub(crate) struct Spec {
    /// One to eight outputs.
    pub(crate) outputs: Vec<Output>,
    /// Whether they were written as a tuple; one output may be.
    pub(crate) is_tuple: bool,
    pub(crate) backward: Backward,
}

/// What is said of backward.
pub(crate) enum Backward {
    /// It is written in `impl Op`.
    Written(Terms),
    /// There is none, and so no output has a gradient.
    None,
}

/// Under which terms backward receives gradients and returns them.
pub(crate) struct Terms {
    /// Whether gradient dtypes were written, as opposed to following from the outputs.
    pub(crate) declared: bool,
    /// What a gradient of another dtype gets, if that was written.
    pub(crate) policy: Option<Policy>,
    /// Whether an unused output's gradient is zeros, as opposed to missing.
    pub(crate) materialize: bool,
    /// Whether what it returns cannot be differentiated again.
    pub(crate) once: bool,
}

/// What a gradient of another dtype gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// It is converted.
    Cast,
    /// It is refused.
    Strict,
}

/// One output's part of it.
pub(crate) struct Output {
    pub(crate) dtype: Element,
    pub(crate) gradient: Gradient,
}

/// A dtype as it was written.
#[derive(Clone)]
pub(crate) enum Element {
    /// A word of the vocabulary, and where it stands.
    Word(&'static Dtype, Span),
    /// A type parameter of the struct.
    Parameter(Ident),
}

/// How an output's gradient arrives.
#[derive(Clone)]
pub(crate) enum Gradient {
    /// In the output's own dtype; an integer output has none, which needs no saying.
    Own,
    /// In this dtype: floating, or a type parameter.
    Exactly(Element),
    /// As it comes. The output is not an integer.
    Any(Span),
    /// Never, although the output is not an integer.
    Never(Span),
}

impl Output {
    /// Whether it is differentiable. A type parameter is floating.
    pub(crate) fn has_gradient(&self) -> bool {
        matches!(self.gradient, Gradient::Any(_)) || self.has_gradient_dtype()
    }

    /// Whether its gradient arrives in one dtype.
    pub(crate) fn has_gradient_dtype(&self) -> bool {
        match &self.gradient {
            Gradient::Own => !self.dtype.is_integer(),
            Gradient::Exactly(_) => true,
            Gradient::Any(_) | Gradient::Never(_) => false,
        }
    }

    /// The type parameters that it names.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Ident> {
        let gradient = match &self.gradient {
            Gradient::Exactly(gradient) => Some(gradient),
            Gradient::Own | Gradient::Any(_) | Gradient::Never(_) => None,
        };
        [Some(&self.dtype), gradient].into_iter().flatten().filter_map(Element::parameter)
    }
}

impl Element {
    pub(crate) fn parameter(&self) -> Option<&Ident> {
        match self {
            Self::Word(..) => None,
            Self::Parameter(name) => Some(name),
        }
    }

    /// Whether it is known to be an integer or `bool`.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Self::Word(dtype, _) if !dtype.floating)
    }

    /// The word as it was written.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Word(dtype, _) => dtype.name.to_owned(),
            Self::Parameter(name) => name.to_string(),
        }
    }

    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Word(_, span) => *span,
            Self::Parameter(name) => name.span(),
        }
    }
}
