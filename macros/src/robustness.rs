//! Feeds the attribute everything short enough to try. Whatever it is given, it answers with items and does not panic.

use proc_macro2::TokenStream;

use crate::attribute;

/// Words and signs that mean something to the attribute, and some that do not.
const TOKENS: [&str; 16] = [
    "out",
    "grad",
    "once",
    "backward",
    "crate",
    "f16",
    "i64",
    "any",
    "none",
    "T",
    "=",
    ",",
    "::",
    "\"f16\"",
    "(f16, f32)",
    "<",
];

/// Every sequence of up to `length` tokens.
fn sequences(length: u32) -> impl Iterator<Item = String> {
    let base = TOKENS.len();
    (0..base.pow(length)).map(move |number| {
        let mut words = Vec::new();
        let mut rest = number;
        while rest > 0 {
            words.push(TOKENS[rest % base]);
            rest /= base;
        }
        words.join(" ")
    })
}

#[test]
fn arguments_of_a_few_tokens_yield_the_item_and_a_contract_or_an_error() {
    let beginnings = ["", "out = ", "out = f16, "];
    for arguments in sequences(3).flat_map(|end| beginnings.map(|beginning| format!("{beginning}{end}"))) {
        let item: TokenStream = "struct S<T>(T);".parse().expect("these are tokens");
        let expansion = attribute(arguments.parse().expect("these are tokens"), item);
        let file: syn::File = syn::parse2(expansion).unwrap_or_else(|error| panic!("{arguments}: {error}"));
        assert!(matches!(&file.items[0], syn::Item::Struct(item) if item.ident == "S"), "{arguments}");
        assert!(file.items.len() > 1, "{arguments}");
    }
}

#[test]
fn items_cut_off_anywhere_are_emitted_again() {
    let whole = "pub(crate) struct S < 'a , T : Clone = u8 , const N : usize > (&'a [T; N]) where T : Copy , [T; N] : Sized ;";
    let words: Vec<&str> = whole.split(' ').collect();
    for end in 0..words.len() {
        // Some pieces are not tokens, for want of a closing bracket.
        let Ok(item) = words[..end].join(" ").parse::<TokenStream>() else { continue };
        let expansion = attribute("out = f16".parse().expect("these are tokens"), item.clone());
        assert!(expansion.to_string().starts_with(&item.to_string()), "{item}");
    }
}
