//! The rules for `grad`.

use proc_macro2::{Ident, TokenStream};
use syn::Generics;

use super::outputs::Outputs;
use super::word;
use crate::dtype::Dtype;
use crate::errors::Errors;
use crate::parse::List;
use crate::spec::{Element, Gradient};

/// The gradients, each nothing where it has been reported.
pub(super) struct Gradients {
    gradients: Vec<Option<Gradient>>,
    tokens: TokenStream,
    is_tuple: bool,
    last_word: String,
}

impl Gradients {
    pub(super) fn check(list: &List, generics: &Generics, errors: &mut Errors) -> Self {
        let mut last_word = String::new();
        let mut gradients = Vec::new();
        for item in &list.items {
            let gradient = word::read(item, generics, errors).and_then(|word| {
                last_word = word.to_string();
                gradient(&word, generics, errors)
            });
            gradients.push(gradient);
        }
        Self { gradients, tokens: list.tokens.clone(), is_tuple: list.is_tuple, last_word }
    }

    /// One gradient for each output, and one that the output can have.
    pub(super) fn check_against(&self, outputs: &Outputs, errors: &mut Errors) {
        if !outputs.counted {
            return;
        }
        if self.gradients.len() != outputs.len() {
            return errors.at(&self.tokens, self.miscount(outputs.len()));
        }
        for (index, gradient) in self.gradients.iter().enumerate() {
            if let (Some(Gradient::Any(span)), Some(output)) = (gradient, outputs.element(index))
                && output.is_integer()
            {
                errors.on(*span, no_gradient_of_its_own(output));
            }
        }
    }

    /// The gradients, once nothing has been reported.
    pub(super) fn into_gradients(self, outputs: &[Element]) -> Vec<Gradient> {
        let gradients = self.gradients.into_iter().flatten().zip(outputs);
        gradients
            .map(|(gradient, output)| match gradient {
                Gradient::Never(_) if output.is_integer() => Gradient::Own,
                gradient => gradient,
            })
            .collect()
    }

    fn miscount(&self, outputs: usize) -> String {
        let written = self.gradients.len();
        let counts = format!("{} but {}", counted(outputs, "output"), counted(written, "gradient dtype"));
        if self.is_tuple || self.last_word.is_empty() {
            return format!("{counts}: write one for each output, in their order");
        }
        let each = vec![self.last_word.as_str(); outputs].join(", ");
        format!("{counts}: write `grad = ({each})`")
    }
}

/// What one word says about a gradient; nothing if it has been reported.
fn gradient(word: &Ident, generics: &Generics, errors: &mut Errors) -> Option<Gradient> {
    let name = word.to_string();
    if generics.type_params().all(|parameter| parameter.ident != *word) {
        match name.as_str() {
            "any" => return Some(Gradient::Any(word.span())),
            "none" => return Some(Gradient::Never(word.span())),
            "same" => {
                errors.at(word, "`same` is the default: leave `grad` out, or repeat the output's dtype");
                return None;
            }
            _ => {}
        }
        let lower = name.to_ascii_lowercase();
        if lower == "any" || lower == "none" {
            errors.at(word, format!("unknown dtype `{name}`: write `{lower}`"));
            return None;
        }
        if Dtype::named(&name).or_else(|| Dtype::guessed(&name)).is_some_and(|dtype| !dtype.floating) {
            errors.at(word, not_floating(&name));
            return None;
        }
    }
    word::element(word, generics, errors).map(Gradient::Exactly)
}

fn no_gradient_of_its_own(output: &Element) -> String {
    let dtype = output.text();
    let instead = "write `none`, or a floating dtype such as `f32`";
    format!("an output stored in `{dtype}` has no gradient of its own: {instead}")
}

fn not_floating(name: &str) -> String {
    let floating = Dtype::floating_listed();
    let instead = format!("write one of {floating}, or `none` for no gradient");
    format!("a gradient must be floating, `{name}` is not: {instead}")
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
