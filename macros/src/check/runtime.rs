//! The rules for `crate`: where the expansion finds the runtime.

use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use quote::quote;

use super::manifest::{self, Dependency};
use crate::errors::Errors;
use crate::key::Key;
use crate::parse::{Slot, text};

/// The path of the runtime, if there is one that resolves.
pub(crate) struct Runtime(Option<TokenStream>);

impl Runtime {
    /// What `crate` says, else `::gradpact`.
    pub(crate) fn check(slot: &Slot, errors: &mut Errors) -> Self {
        Self(match slot {
            Slot::Given(value) if is_path(&value.tokens) => Some(value.tokens.iter().cloned().collect()),
            Slot::Given(value) => {
                let (instead, path) = objection(&value.tokens);
                errors.at(value.tokens.iter().cloned().collect::<TokenStream>(), instead);
                path
            }
            Slot::Broken => None,
            Slot::Absent => match manifest::dependency() {
                Dependency::Direct => Some(quote!(::gradpact)),
                Dependency::Renamed(name) => {
                    let found = "`gradpact` is a dependency of this crate under another name";
                    errors.on(Span::call_site(), format!("{found}: write `crate = ::{name}`"));
                    format!("::{name}").parse().ok()
                }
                Dependency::Missing => {
                    errors.on(Span::call_site(), missing());
                    None
                }
            },
        })
    }

    pub(crate) fn path(&self) -> Option<&TokenStream> {
        self.0.as_ref()
    }
}

fn missing() -> String {
    let example = Key::Crate.example();
    format!(
        "`gradpact` is not a dependency of this crate: add it, or name the crate that re-exports it, as in `{example}`"
    )
}

/// What is wrong with a path, and the path that was meant.
fn objection(tokens: &[TokenTree]) -> (String, Option<TokenStream>) {
    if let [TokenTree::Literal(literal)] = tokens {
        let inner = unquoted(literal);
        if let Ok(path) = inner.parse::<TokenStream>()
            && is_path(&path.clone().into_iter().collect::<Vec<_>>())
        {
            return (format!("a path is not a string: write `crate = {inner}`"), Some(path));
        }
    }
    let example = Key::Crate.example();
    (format!("`{}` is not the path of a crate or module: write it as in `{example}`", text(tokens)), None)
}

fn unquoted(literal: &Literal) -> String {
    literal.to_string().trim_matches('"').to_owned()
}

/// Whether these are words with `::` between them, and perhaps before them.
fn is_path(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    let mut rest = tokens;
    if let [first, second, after @ ..] = rest
        && is_colon(first)
        && is_colon(second)
    {
        rest = after;
    }
    while let [TokenTree::Ident(_), first, second, after @ ..] = rest {
        if !is_colon(first) || !is_colon(second) {
            return false;
        }
        rest = after;
    }
    matches!(rest, [TokenTree::Ident(_)])
}
