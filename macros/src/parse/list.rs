//! Reads a value that is one item or a tuple of them. It does not ask what an item is.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::arguments::Value;
use super::tokens::{flat, is_punct, split_at_commas, text};
use crate::errors::Errors;

/// One item, or a tuple of items.
pub(crate) struct List {
    /// All tokens of the value, to underline.
    pub(crate) tokens: TokenStream,
    /// The tokens of each item, at least one of them.
    pub(crate) items: Vec<Vec<TokenTree>>,
    pub(crate) is_tuple: bool,
}

impl List {
    /// Reads the value. As in Rust, `(f16)` is `f16` and `(f16,)` a tuple of one.
    pub(crate) fn parse(value: &Value, errors: &mut Errors) -> Self {
        let tokens: TokenStream = value.tokens.iter().cloned().collect();
        let [TokenTree::Group(group)] = &value.tokens[..] else {
            return Self { tokens, items: vec![value.tokens.clone()], is_tuple: false };
        };
        let inner = flat(group.stream());
        let mut is_tuple = inner.is_empty() || inner.iter().any(|token| is_punct(Some(token), ','));
        if group.delimiter() != Delimiter::Parenthesis {
            errors.on(group.span(), wrong_brackets(value, group, is_tuple));
            is_tuple = true;
        }
        Self { tokens, items: split_at_commas(inner, errors), is_tuple }
    }
}

fn wrong_brackets(value: &Value, group: &Group, is_tuple: bool) -> String {
    let inner = text(&flat(group.stream()));
    let instead = if is_tuple { format!("({inner})") } else { inner };
    format!("several dtypes are written as a tuple, one as a word: write `{} = {instead}`", value.key)
}
