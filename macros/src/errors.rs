//! The mistakes found so far. Every stage adds to one list, so that a user sees all of them at once.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};

/// Mistakes in the order in which they were found, each with the tokens to underline.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Records a mistake that spans `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl AsRef<str>) {
        self.0.push(syn::Error::new_spanned(tokens, message.as_ref()));
    }

    /// Records a mistake that may come up more than once.
    pub(crate) fn once(&mut self, tokens: impl ToTokens, message: impl AsRef<str>) {
        if self.0.iter().all(|error| error.to_string() != message.as_ref()) {
            self.at(tokens, message);
        }
    }

    /// Records a mistake at one place.
    pub(crate) fn on(&mut self, span: Span, message: impl AsRef<str>) {
        self.0.push(syn::Error::new(span, message.as_ref()));
    }

    /// Records what `syn` could not read.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One `compile_error!` a mistake: the first by itself, then the others as items under `conditions`.
    pub(crate) fn into_tokens(self, conditions: &[TokenStream]) -> (TokenStream, TokenStream) {
        let mut errors = self.0.into_iter().map(syn::Error::into_compile_error);
        (errors.next().unwrap_or_default(), errors.map(|error| quote!(#(#conditions)* #error)).collect())
    }
}
