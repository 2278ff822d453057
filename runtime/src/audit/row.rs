//! What an audit holds: admissions of gradients, and conversions elsewhere.

use core::fmt;

use crate::contract::{GradContract, GradDType, Source};
use crate::dtype::{Census, DType};
use crate::error::Phase;
use crate::observe::NodeInfo;
use crate::shape::Shape;

/// One thing that happened.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Admission(Box<Row>),
    Conversion(Box<Conversion>),
}

/// A gradient at an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which backward call of the audit, from 0.
    pub call: u64,
    /// Whose backward sent the gradient, as that of which of its inputs; `None` for a seed.
    pub sender: Option<(NodeInfo, usize)>,
    /// Whose gradient it is: a Function that computed the tensor, or a leaf.
    pub receiver: NodeInfo,
    /// Which output of the receiver.
    pub output: usize,
    /// The shape of the tensor.
    pub shape: Shape,
    /// The dtype that the tensor is stored in.
    pub storage: DType,
    /// The dtype that its gradient must have, who said so, and what another one gets.
    pub contract: GradContract,
    /// The dtype that the gradient came in.
    pub arrived: DType,
    /// What was done with it.
    pub outcome: Outcome,
}

/// What was done with a gradient at an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was delivered.
    Delivered {
        /// In this dtype.
        dtype: DType,
        /// What became of its values, if the engine counts.
        census: Option<Census>,
    },
    /// It was not, and the backward ended with this error.
    Refused(String),
}

/// What an admission did to a gradient's dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happened {
    /// It came in the dtype it was delivered in.
    Nothing,
    /// It was converted to a dtype that holds every value it could have.
    Widened,
    /// It was converted to one that does not.
    Narrowed,
    /// It was not delivered.
    Refused,
}

impl Happened {
    pub(super) fn between(from: DType, to: DType) -> Self {
        match (from == to, from.fits_in(to)) {
            (true, _) => Self::Nothing,
            (_, true) => Self::Widened,
            _ => Self::Narrowed,
        }
    }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nothing => "–",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Refused => "refused",
        })
    }
}

impl Row {
    /// The dtype that the gradient was delivered in.
    pub fn delivered(&self) -> Option<DType> {
        match self.outcome {
            Outcome::Delivered { dtype, .. } => Some(dtype),
            Outcome::Refused(_) => None,
        }
    }

    /// What became of its values, if the engine counts them.
    pub fn census(&self) -> Option<Census> {
        match self.outcome {
            Outcome::Delivered { census, .. } => census,
            Outcome::Refused(_) => None,
        }
    }

    /// What the admission did to the gradient's dtype.
    pub fn happened(&self) -> Happened {
        self.delivered().map_or(Happened::Refused, |dtype| Happened::between(self.arrived, dtype))
    }

    /// "output 0 of `Silu`", or "a leaf".
    pub(super) fn receiver_text(&self) -> String {
        self.receiver.named(&format!("output {} of `{}`", self.output, self.receiver.function))
    }

    /// "input 1 of `Mul`", or "the seed".
    pub(super) fn sender_text(&self) -> String {
        match &self.sender {
            Some((node, input)) => node.named(&format!("input {input} of `{}`", node.function)),
            None => "the seed".to_owned(),
        }
    }

    /// "f32, declared", "f16, default", "any, declared".
    pub(super) fn declared_text(&self) -> String {
        format!("{} {}", self.contract.grad_dtype, source_text(self.contract.source))
    }

    /// "narrowed: 1 of 2 became zero".
    pub(super) fn happened_text(&self) -> String {
        match &self.outcome {
            Outcome::Refused(error) => format!("refused: {error}"),
            Outcome::Delivered { census, .. } => with_census(self.happened(), census.as_ref()),
        }
    }

    /// Whether somebody asked for the dtype that it was converted to.
    pub(super) fn is_declared(&self) -> bool {
        self.contract.source == Source::Declared && self.contract.grad_dtype != GradDType::Any
    }
}

/// "(declared)".
fn source_text(source: Source) -> String {
    format!("({source})")
}

fn with_census(happened: Happened, census: Option<&Census>) -> String {
    match (happened, census) {
        (Happened::Nothing, Some(census)) if census.nan + census.infinite > 0 => census.to_string(),
        (Happened::Narrowed, Some(census)) => format!("narrowed: {census}"),
        (happened, _) => happened.to_string(),
    }
}

/// Where a conversion was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Outside of all Functions.
    Outside,
    /// In the forward, the backward or a hook of this Function.
    Function {
        /// Its name.
        function: String,
        /// What of it was running.
        phase: Phase,
        /// The node whose backward it was, and in which backward call of the audit.
        backward: Option<(NodeInfo, u64)>,
    },
    /// When the gradients of this output had been summed.
    Sum {
        /// The node.
        node: NodeInfo,
        /// The output of its Function.
        output: usize,
        /// Which backward call of the audit.
        call: u64,
    },
}

impl Stage {
    /// Whether gradients were being added up.
    pub(super) fn is_sum(&self) -> bool {
        match self {
            Self::Sum { .. } => true,
            Self::Function { backward: Some((node, _)), .. } => node.is_leaf,
            _ => false,
        }
    }

    /// Call and node, if it was part of a backward.
    pub(super) fn in_backward(&self) -> Option<(u64, u64)> {
        match self {
            Self::Function { backward: Some((node, call)), .. } | Self::Sum { node, call, .. } => {
                Some((*call, node.sequence_nr))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => f.write_str("outside of Functions"),
            Self::Function { backward: Some((node, _)), .. } if node.is_leaf => {
                write!(f, "the sum at {}", node.named(""))
            }
            Self::Function { backward: Some((node, _)), phase, function } => {
                f.write_str(&node.named(&format!("{phase} of `{function}`")))
            }
            Self::Function { function, phase, .. } => write!(f, "{phase} of `{function}`"),
            Self::Sum { node, output, .. } => {
                let text = node.named(&format!("output {output} of `{}`", node.function));
                write!(f, "the sum at {text}")
            }
        }
    }
}

/// A conversion of a whole tensor that is not an admission: a cast in a formula, a saved tensor that hooks narrow, a sum that
/// is rounded when it is complete; or an operation that lost values to infinity or zero when it stored its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// Where.
    pub stage: Stage,
    /// The built-in operation there, if it was one of several that a Function calls.
    pub operation: Option<String>,
    /// Whether it is the result of an operation, computed in `from` and stored in `to`. These are told only if values overflowed
    /// or became zero.
    pub is_result: bool,
    /// The dtype before.
    pub from: DType,
    /// The dtype after.
    pub to: DType,
    /// What became of the values, if the engine counts and both dtypes are floating.
    pub census: Option<Census>,
}

impl Conversion {
    /// What it did.
    pub fn happened(&self) -> Happened {
        Happened::between(self.from, self.to)
    }

    pub(super) fn happened_text(&self) -> String {
        match &self.census {
            Some(census) if self.is_result => format!("result stored: {census}"),
            census => with_census(self.happened(), census.as_ref()),
        }
    }

    /// Whether a gradient lost something here: it was cast to a dtype that cannot hold it, or values overflowed or became
    /// zero when a result or a sum was stored.
    pub(super) fn loses_gradient(&self) -> bool {
        let lost = self.census.is_some_and(|census| census.lost());
        let by_rounding = self.is_result || self.stage.is_sum();
        self.stage.in_backward().is_some() && self.happened() == Happened::Narrowed && (lost || !by_rounding)
    }

    /// "backward of `Silu` (Mul)".
    pub(super) fn place_text(&self) -> String {
        match &self.operation {
            Some(operation) => format!("{} ({operation})", self.stage),
            None => self.stage.to_string(),
        }
    }
}
