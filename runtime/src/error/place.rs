//! Where something went wrong: a position of a Function, and which half of it was running.

use core::fmt;

/// Whether a position counts a Function's inputs or its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// An argument of `forward`; `backward` returns its gradient.
    Input,
    /// A result of `forward`; `backward` receives its gradient.
    Output,
}

/// A position of a Function: "output 0 of `Silu`".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The Function's name.
    pub function: String,
    /// Input or output.
    pub side: Side,
    /// Counted from zero.
    pub position: usize,
}

impl Place {
    pub(crate) fn input(function: &str, position: usize) -> Self {
        Self { function: function.to_owned(), side: Side::Input, position }
    }

    pub(crate) fn output(function: &str, position: usize) -> Self {
        Self { function: function.to_owned(), side: Side::Output, position }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Input => "input",
            Side::Output => "output",
        };
        write!(f, "{side} {} of `{}`", self.position, self.function)
    }
}

/// What of a Function was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Computing values.
    Forward,
    /// Computing gradients.
    Backward,
    /// A hook that sees gradients: of a tensor, before or after a node, or of a leaf.
    Hook,
    /// A hook that packs what forward saved.
    Pack,
    /// A hook that unpacks it for backward, or the recomputation of a checkpoint.
    Unpack,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Hook => "a hook",
            Self::Pack => "packing a saved tensor",
            Self::Unpack => "unpacking a saved tensor",
        })
    }
}
