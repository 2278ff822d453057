//! Second stage: every rule about what the words mean. What comes out of it is legal; what is not has been reported.

mod gradients;
mod manifest;
mod outputs;
mod runtime;
mod word;

use proc_macro2::Span;
use syn::Generics;

pub(crate) use self::runtime::Runtime;
use crate::errors::Errors;
use crate::key::Key;
use crate::parse::{Arguments, List, Slot, Target};
use crate::spec::{Gradient, Output, Spec};

/// What the arguments say, or all that is wrong so far.
pub(crate) fn check(arguments: &Arguments, target: &Target, mut errors: Errors) -> Result<Spec, Errors> {
    match target.subject.as_ref().filter(|_| target.is_struct) {
        Some(subject) => spec(arguments, &subject.generics, &mut errors).ok_or(errors),
        None => Err(errors),
    }
}

fn spec(arguments: &Arguments, generics: &Generics, errors: &mut Errors) -> Option<Spec> {
    let outputs = match &arguments.out {
        Slot::Given(value) => Some(outputs::Outputs::check(&List::parse(value, errors), generics, errors)),
        Slot::Absent => {
            errors.on(Span::call_site(), missing_out(arguments.empty));
            None
        }
        Slot::Broken => None,
    };
    let gradients = match &arguments.grad {
        Slot::Given(value) => {
            Some(gradients::Gradients::check(&List::parse(value, errors), generics, errors))
        }
        Slot::Absent | Slot::Broken => None,
    };
    let outputs = outputs?;
    if let Some(gradients) = &gradients {
        gradients.check_against(&outputs, errors);
    }
    if !errors.is_empty() {
        return None;
    }
    let is_tuple = outputs.is_tuple;
    let dtypes = outputs.into_elements();
    let declared = gradients.is_some();
    let gradients = gradients
        .map_or_else(|| vec![Gradient::Own; dtypes.len()], |gradients| gradients.into_gradients(&dtypes));
    let outputs = dtypes.into_iter().zip(gradients).map(|(dtype, gradient)| Output { dtype, gradient });
    Some(Spec { outputs: outputs.collect(), is_tuple, declared })
}

fn missing_out(is_empty: bool) -> String {
    if is_empty {
        let full = "write `#[autograd_function(out = f16)]`, or `(out = f16, grad = f32)`";
        return format!("the dtype of the output is missing: {full} for a gradient in another dtype");
    }
    format!("`out` is missing: say in which dtype each output is stored, as in `{}`", Key::Out.example())
}
