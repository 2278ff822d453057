//! First stage: from tokens to arguments and a target. It reports bad syntax; what the words mean is the check's affair.

mod arguments;
mod list;
mod target;
mod tokens;

pub(crate) use arguments::{Arguments, Slot, Value};
pub(crate) use list::List;
pub(crate) use target::{Subject, Target};
pub(crate) use tokens::{flat, text};
