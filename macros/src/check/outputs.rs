//! The rules for `out`.

use proc_macro2::TokenStream;
use syn::Generics;

use super::word;
use crate::errors::Errors;
use crate::parse::List;
use crate::spec::Element;

/// The runtime implements its traits for tuples of up to this many.
const MOST_OUTPUTS: usize = 8;

/// The outputs, each nothing where it has been reported.
pub(super) struct Outputs {
    elements: Vec<Option<Element>>,
    pub(super) is_tuple: bool,
    /// Whether their number is right, so that other keys can be measured by it.
    pub(super) counted: bool,
}

impl Outputs {
    pub(super) fn check(list: &List, generics: &Generics, errors: &mut Errors) -> Self {
        let count = list.items.len();
        let counted = (1..=MOST_OUTPUTS).contains(&count);
        if count == 0 {
            errors.at(&list.tokens, "no output: a Function has at least one, as in `out = f16`");
        } else if !counted {
            let surplus: TokenStream = list.items[MOST_OUTPUTS..].iter().flatten().cloned().collect();
            errors.at(
                surplus,
                format!("{count} outputs: with more than {MOST_OUTPUTS}, implement `Function` by hand"),
            );
        }
        let elements = list.items.iter().map(|item| {
            let word = word::read(item, generics, errors)?;
            let name = word.to_string();
            let is_parameter = generics.type_params().any(|parameter| parameter.ident == word);
            if matches!(name.to_ascii_lowercase().as_str(), "any" | "none") && !is_parameter {
                errors
                    .at(word, format!("`{name}` is for `grad`: an output is stored in a dtype, as in `f16`"));
                return None;
            }
            word::element(&word, generics, errors)
        });
        Self { elements: elements.collect(), is_tuple: list.is_tuple, counted }
    }

    pub(super) fn len(&self) -> usize {
        self.elements.len()
    }

    /// The output at a position, if there is one and it is legal.
    pub(super) fn element(&self, index: usize) -> Option<&Element> {
        self.elements.get(index)?.as_ref()
    }

    /// The outputs, once nothing has been reported.
    pub(super) fn into_elements(self) -> Vec<Element> {
        self.elements.into_iter().flatten().collect()
    }
}
