//! What is checked: a Function under observation, or a closure. To the rest of this module both are a way from
//! inputs to outputs.

use std::sync::Arc;

use super::observed::{Log, Observed};
use crate::autograd::{DynTensor, Outputs};
use crate::error::{Error, Result};
use crate::function::{Function, apply_optional};

/// From inputs, some of which may be left out, to outputs.
pub(super) type Run<'a> = dyn Fn(&[Option<&DynTensor>]) -> Result<Outputs> + 'a;

/// What is checked.
pub(super) struct Subject<'a> {
    pub(super) name: String,
    pub(super) run: Box<Run<'a>>,
    /// What its backward receives and returns; a closure's is not seen.
    pub(super) log: Option<Arc<Log>>,
}

impl<'a> Subject<'a> {
    pub(super) fn function<F: Function>(function: F) -> Self {
        let (function, log) = (Arc::new(function), Arc::new(Log::default()));
        let (name, kept) = (function.name().to_owned(), Arc::clone(&log));
        let run = move |inputs: &[Option<&DynTensor>]| {
            let (function, log) = (Arc::clone(&function), Arc::clone(&log));
            apply_optional(Observed { function, log, inputs: inputs.len() }, inputs)
        };
        Self { name, run: Box::new(run), log: Some(kept) }
    }

    pub(super) fn closure<O: Into<Outputs>>(
        name: &str,
        closure: impl Fn(&[&DynTensor]) -> Result<O> + 'a,
    ) -> Self {
        let run = move |inputs: &[Option<&DynTensor>]| closure(&all_given(inputs)?).map(O::into);
        Self { name: name.to_owned(), run: Box::new(run), log: None }
    }
}

/// The inputs of a closure, which cannot be left out.
pub(super) fn all_given<'t>(inputs: &[Option<&'t DynTensor>]) -> Result<Vec<&'t DynTensor>> {
    let absent = |position: usize| Error::Argument {
        operation: "gradcheck",
        problem: format!("input {position} of a closure is left out; only a Function has optional inputs"),
    };
    inputs.iter().enumerate().map(|(position, input)| input.ok_or_else(|| absent(position))).collect()
}
