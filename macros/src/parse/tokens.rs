//! Small operations on token lists. They report nothing but stray commas.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::errors::Errors;

/// The tokens without the invisible groups that `macro_rules!` puts around its fragments.
pub(crate) fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let mut flattened = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                flattened.extend(flat(group.stream()));
            }
            token => flattened.push(token),
        }
    }
    flattened
}

/// Splits at commas; one at the end is allowed.
pub(crate) fn split_at_commas(tokens: Vec<TokenTree>, errors: &mut Errors) -> Vec<Vec<TokenTree>> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    for token in tokens {
        if is_punct(Some(&token), ';') {
            errors.at(token, "expected a comma, found `;`");
        } else if !is_punct(Some(&token), ',') {
            piece.push(token);
            continue;
        } else if piece.is_empty() {
            errors.at(token, "nothing stands before this comma: remove it");
        }
        if !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

pub(crate) fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

/// Whether the tokens begin with an `=` that is not the start of `==` or `=>`.
pub(crate) fn starts_with_equals(tokens: &[TokenTree]) -> bool {
    match tokens {
        [TokenTree::Punct(first), rest @ ..] if first.as_char() == '=' => {
            let joint = first.spacing() == Spacing::Joint;
            !(joint && (is_punct(rest.first(), '=') || is_punct(rest.first(), '>')))
        }
        _ => false,
    }
}

/// The tokens as a user would write them, for a message.
pub(crate) fn text(tokens: &[TokenTree]) -> String {
    let mut text = String::new();
    for token in tokens {
        let after_word = text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ',');
        if after_word && matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_)) {
            text.push(' ');
        }
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                text.extend([open, &self::text(&flat(group.stream())), close]);
            }
            token => text.push_str(&token.to_string()),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{flat, text};

    #[test]
    fn tokens_are_shown_as_they_are_written() {
        for written in ["half::f16", "Tensor<f16>", "(f16, f32)", "&f16", "a b", "torch.float16", "[f16]"] {
            assert_eq!(text(&flat(written.parse().expect("these are tokens"))), written);
        }
    }
}
