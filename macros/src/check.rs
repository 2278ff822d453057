//! Second stage: every rule about what the words mean. What comes out of it is legal; what is not has been reported.

mod backward;
mod choice;
mod gradients;
mod manifest;
mod outputs;
mod runtime;
mod word;

use proc_macro2::Span;
use syn::Generics;

use self::backward::Said;
use self::gradients::Gradients;
use self::outputs::Outputs;
pub(crate) use self::runtime::Runtime;
use crate::errors::Errors;
use crate::key::Key;
use crate::parse::{Arguments, List, Slot, Target};
use crate::spec::{Backward, Element, Gradient, Output, Spec};

/// What the arguments say, or all that is wrong so far.
pub(crate) fn check(arguments: &Arguments, target: &Target, mut errors: Errors) -> Result<Spec, Errors> {
    match target.subject.as_ref().filter(|_| target.is_struct) {
        Some(subject) => spec(arguments, &subject.generics, &mut errors).ok_or(errors),
        None => Err(errors),
    }
}

fn spec(arguments: &Arguments, generics: &Generics, errors: &mut Errors) -> Option<Spec> {
    let none = backward::none(&arguments.backward, errors);
    let earlier = errors.count();
    let outputs = match &arguments.out {
        Slot::Given(value) => Some(Outputs::check(&List::parse(value, errors), generics, errors)),
        Slot::Absent => {
            errors.on(Span::call_site(), missing_out(arguments.empty));
            None
        }
        Slot::Broken => None,
    };
    if let Some(none) = none {
        backward::refuse_beside_none(arguments, errors);
        return without_backward(outputs?, none, errors);
    }
    let gradients = match &arguments.grad {
        Slot::Given(value) => Some(Gradients::check(&List::parse(value, errors), generics, errors)),
        Slot::Absent | Slot::Broken => None,
    };
    if let (Some(outputs), Some(gradients)) = (&outputs, &gradients) {
        gradients.check_against(outputs, errors);
    }
    // The other keys can be measured by the outputs only where nothing is wrong with those.
    let measurable = errors.count() == earlier && !matches!(arguments.grad, Slot::Broken);
    let said = Said::check(arguments, errors);
    with_backward(outputs.filter(|_| measurable)?, gradients, said, errors)
}

/// No output has a gradient.
fn without_backward(outputs: Outputs, none: Span, errors: &Errors) -> Option<Spec> {
    if !errors.is_empty() {
        return None;
    }
    let is_tuple = outputs.is_tuple;
    let output = |dtype: Element| {
        let gradient = if dtype.is_integer() { Gradient::Own } else { Gradient::Never(none) };
        Output { dtype, gradient }
    };
    let outputs = outputs.into_elements().into_iter().map(output).collect();
    Some(Spec { outputs, is_tuple, backward: Backward::None })
}

/// Outputs and gradients are legal; what else is said may have no effect on them.
fn with_backward(
    outputs: Outputs,
    gradients: Option<Gradients>,
    said: Said,
    errors: &mut Errors,
) -> Option<Spec> {
    let (is_tuple, declared) = (outputs.is_tuple, gradients.is_some());
    let dtypes = outputs.into_elements();
    let gradients = gradients
        .map_or_else(|| vec![Gradient::Own; dtypes.len()], |gradients| gradients.into_gradients(&dtypes));
    let output = |(dtype, gradient)| Output { dtype, gradient };
    let outputs: Vec<Output> = dtypes.into_iter().zip(gradients).map(output).collect();
    said.check_against(&outputs, errors);
    let backward = Backward::Written(said.into_terms(declared));
    errors.is_empty().then_some(Spec { outputs, is_tuple, backward })
}

fn missing_out(is_empty: bool) -> String {
    if is_empty {
        let full = "write `#[autograd_function(out = f16)]`, or `(out = f16, grad = f32)`";
        return format!("the dtype of the output is missing: {full} for a gradient in another dtype");
    }
    format!("`out` is missing: say in which dtype each output is stored, as in `{}`", Key::Out.example())
}
