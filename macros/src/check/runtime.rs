//! The rules for `crate`: where the expansion finds the runtime.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;

use super::manifest::{self, Dependency};
use crate::errors::Errors;
use crate::key::Key;
use crate::parse::{Slot, flat, text};

/// Where the runtime is found.
pub(crate) enum Runtime {
    /// At this path, as it was written.
    Written(TokenStream),
    /// In the crate of this name.
    Crate(Ident),
    /// Nowhere, which has been reported.
    Missing,
}

impl Runtime {
    /// What `crate` says, else what the manifest does.
    pub(crate) fn check(slot: &Slot, errors: &mut Errors) -> Self {
        if let Slot::Given(value) = slot {
            let written: TokenStream = value.tokens.iter().cloned().collect();
            if is_path(&value.tokens) {
                return Self::Written(written);
            }
            errors.at(written, objection(&value.tokens));
        }
        let dependency = manifest::dependency();
        if matches!(slot, Slot::Absent) {
            match &dependency {
                Dependency::Direct => {}
                Dependency::Renamed(name) => errors.on(Span::call_site(), renamed(name)),
                Dependency::Missing => errors.on(Span::call_site(), missing()),
            }
        }
        match dependency {
            Dependency::Direct => Self::Crate(Ident::new("gradpact", Span::call_site())),
            Dependency::Renamed(name) => Self::Crate(name),
            Dependency::Missing => Self::Missing,
        }
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// The path, blamed on `span` unless the user wrote it.
    pub(crate) fn at(&self, span: Span) -> TokenStream {
        match self {
            Self::Written(path) => path.clone(),
            Self::Crate(name) => {
                let name = Ident::new(&name.to_string(), span);
                quote_spanned!(span=> ::#name)
            }
            Self::Missing => TokenStream::new(),
        }
    }
}

fn missing() -> String {
    let example = Key::Crate.example();
    let instead = format!("add it, or name the crate that re-exports it, as in `{example}`");
    format!("`gradpact` is not a dependency of this crate: {instead}")
}

fn renamed(name: &Ident) -> String {
    format!("`gradpact` is a dependency of this crate under another name: write `crate = ::{name}`")
}

fn objection(tokens: &[TokenTree]) -> String {
    let written = text(tokens);
    let unquoted = written.trim_matches('"');
    let is_quoted = unquoted.len() < written.len() && unquoted.parse().is_ok_and(|path| is_path(&flat(path)));
    if is_quoted {
        return format!("a path is not a string: write `crate = {unquoted}`");
    }
    format!("`{written}` is not the path of a crate or module: write it as in `{}`", Key::Crate.example())
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
