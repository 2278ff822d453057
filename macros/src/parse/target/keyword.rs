//! Finds the keyword that says what kind of item this is, without parsing the item.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};

use super::super::tokens::{flat, is_punct};

/// The word that makes an item what it is.
pub(super) struct Keyword {
    /// None where no keyword begins the item, as in a macro call.
    word: Option<Ident>,
    /// The first token, to underline in that case.
    first: Span,
}

/// What each keyword makes of an item.
const KINDS: [(&str, &str); 14] = [
    ("struct", "a struct"),
    ("enum", "an enum"),
    ("union", "a union"),
    ("fn", "a function"),
    ("impl", "an `impl`"),
    ("trait", "a trait"),
    ("mod", "a module"),
    ("type", "a type alias"),
    ("static", "a static"),
    ("use", "an import"),
    ("macro_rules", "a macro"),
    ("let", "a variable"),
    // These two begin functions and impls as well, so they decide only where none of the above follows.
    ("const", "a constant"),
    ("extern", "an `extern` item"),
];

impl Keyword {
    /// Looks at the tokens before the item's body.
    pub(super) fn find(item: &TokenStream) -> Self {
        let tokens = flat(item.clone());
        let mut rest = &tokens[..];
        while let [first, TokenTree::Group(_), after @ ..] = rest
            && is_punct(Some(first), '#')
        {
            rest = after;
        }
        let head = rest.iter().take_while(|token| !ends_the_head(token));
        let words: Vec<&Ident> = head
            .filter_map(|token| match token {
                TokenTree::Ident(word) => Some(word),
                _ => None,
            })
            .filter(|word| KINDS.iter().any(|(keyword, _)| word == keyword))
            .collect();
        let decisive = words.iter().find(|word| **word != "const" && **word != "extern");
        Self {
            word: decisive.or(words.first()).map(|word| Ident::clone(word)),
            first: rest.first().map_or_else(Span::call_site, TokenTree::span),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.kind().0
    }

    pub(super) fn span(&self) -> Span {
        self.word.as_ref().map_or(self.first, Ident::span)
    }

    /// Why the attribute does not belong here, and where it does.
    pub(super) fn objection(&self) -> String {
        let (keyword, kind) = self.kind();
        let advice = match keyword {
            "fn" => "declare a struct, and make the function the `forward` of `impl Op for` it",
            "impl" => "move it to the definition of the type that this `impl` is for",
            "enum" => "declare a struct; it can have this enum as a field",
            _ => "declare a struct, and write its formulas in `impl Op for` it",
        };
        format!("`#[autograd_function]` belongs on a struct, not on {kind}: {advice}")
    }

    fn kind(&self) -> (&'static str, &'static str) {
        let kind = self.word.as_ref().and_then(|word| KINDS.iter().find(|(keyword, _)| word == keyword));
        kind.copied().unwrap_or(("", "this item"))
    }
}

/// Whether a token can only come after the keyword: a body, a value, a type or the end.
fn ends_the_head(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => matches!(punct.as_char(), '=' | ';' | ':' | '<' | '!'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Keyword;

    #[test]
    fn the_deciding_word_is_found_behind_modifiers() {
        for (item, expected) in [
            ("#[doc = \"enum\"] pub(crate) struct X;", "struct"),
            ("pub const unsafe extern \"C\" fn f(x: u8) {}", "fn"),
            ("const X: fn() = f;", "const"),
            ("extern \"C\" { fn f(); }", "extern"),
            ("unsafe impl<T> Send for X<T> {}", "impl"),
            ("pub(in crate::r#mod) union U { a: u8 }", "union"),
            ("mod m { struct X; }", "mod"),
            ("macro_rules! m { () => { struct X; } }", "macro_rules"),
            ("m! { struct X; }", ""),
            ("", ""),
        ] {
            let tokens = item.parse().expect("these are tokens");
            assert_eq!(Keyword::find(&tokens).name(), expected, "{item}");
        }
    }
}
