//! Reads one dtype word. It does not know whether the word stands for an output or a gradient.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::Generics;

use crate::dtype::Dtype;
use crate::errors::Errors;
use crate::parse::text;
use crate::spec::Element;

/// The word that an item consists of, or is certain to mean; nothing if it has been reported.
pub(super) fn read(item: &[TokenTree], generics: &Generics, errors: &mut Errors) -> Option<Ident> {
    let (blamed, objection) = match item {
        [TokenTree::Ident(word)] => return Some(word.clone()),
        [TokenTree::Literal(literal)] => (item, literal_objection(&literal.to_string())),
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            (item, "tuples do not nest: write one word for each output".to_owned())
        }
        _ if is_path(item) => (item, path_objection(item, generics)),
        [TokenTree::Ident(word), TokenTree::Ident(_) | TokenTree::Literal(_), ..] => (
            &item[1..],
            format!("nothing may follow `{word}`: several dtypes are a tuple, as in `(f16, f32)`"),
        ),
        [TokenTree::Ident(word), rest @ ..] if Dtype::named(&word.to_string()).is_some() => {
            (rest, format!("nothing may follow `{word}`: remove `{}`", text(rest)))
        }
        [TokenTree::Ident(_), ..] => {
            (item, format!("`{}` is not a dtype: write the dtype alone, as in `f16`", text(item)))
        }
        _ => (item, format!("expected a dtype, found `{}`: write a word, as in `f16`", text(item))),
    };
    errors.at(blamed.iter().cloned().collect::<TokenStream>(), objection);
    None
}

/// The dtype that a word names; nothing if it has been reported.
pub(super) fn element(word: &Ident, generics: &Generics, errors: &mut Errors) -> Option<Element> {
    let name = word.to_string();
    let parameter = generics.type_params().find(|parameter| parameter.ident == *word);
    match (Dtype::named(&name), parameter) {
        (Some(_), Some(parameter)) => {
            let objection = format!("`{name}` is a dtype in this attribute: rename the type parameter");
            errors.once(&parameter.ident, objection);
            None
        }
        (Some(dtype), None) => Some(Element::Word(dtype, word.span())),
        (None, Some(_)) => Some(Element::Parameter(word.clone())),
        (None, None) => {
            errors.at(word, unknown(&name, generics));
            None
        }
    }
}

/// Why a word is no dtype, and what to write instead.
fn unknown(name: &str, generics: &Generics) -> String {
    if generics.const_params().any(|parameter| parameter.ident == name) {
        let instead = "a dtype is a word such as `f16`, or a type parameter";
        return format!("`{name}` is a const parameter: {instead}");
    }
    if let Some(dtype) = Dtype::guessed(name) {
        return format!("unknown dtype `{name}`: write `{}`", dtype.name);
    }
    let parameters: Vec<String> =
        generics.type_params().map(|parameter| format!("`{}`", parameter.ident)).collect();
    let or_parameter = if parameters.is_empty() {
        "a type parameter of the struct".to_owned()
    } else {
        format!("the struct's {}", parameters.join(", "))
    };
    format!("unknown dtype `{name}`: the dtypes are {}, or {or_parameter}", Dtype::listed())
}

fn literal_objection(literal: &str) -> String {
    let word = literal.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    match Dtype::named(word).or_else(|| Dtype::guessed(word)) {
        Some(dtype) => format!("a dtype is a word, not a literal: write `{}` without quotes", dtype.name),
        None => format!("expected a dtype, found `{literal}`: write a word, as in `f16`"),
    }
}

fn path_objection(path: &[TokenTree], generics: &Generics) -> String {
    let last = path.last().map(ToString::to_string).unwrap_or_default();
    match Dtype::named(&last).or_else(|| Dtype::guessed(&last)) {
        Some(dtype) => format!("a dtype is a word of this attribute, not a path: write `{}`", dtype.name),
        None => unknown(&text(path), generics),
    }
}

/// Whether an item is made of words with `::` or `.` between them.
fn is_path(item: &[TokenTree]) -> bool {
    let joins = item.iter().filter(|token| matches!(token, TokenTree::Punct(_))).count();
    let of_these = item.iter().all(|token| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => matches!(punct.as_char(), ':' | '.'),
        _ => false,
    });
    joins > 0 && of_these && matches!(item.last(), Some(TokenTree::Ident(_)))
}
