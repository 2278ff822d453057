//! Reads the item under the attribute: its kind, its name and its generics. Fields are nobody's business here.

mod keyword;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, Generics, Ident, Path, Token, Type, Visibility, token};

use self::keyword::Keyword;
use super::tokens::{flat, split_at_commas};
use crate::errors::Errors;

/// The item under the attribute.
pub(crate) struct Target {
    /// The item itself, to be emitted again.
    pub(crate) item: TokenStream,
    /// What impls can be written for, if that much could be read.
    pub(crate) subject: Option<Subject>,
    pub(crate) is_struct: bool,
}

/// A type to write impls for.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) self_type: TokenStream,
    pub(crate) generics: Generics,
    /// Whether some of the generics may not be there, which has been reported: no impl can follow that.
    pub(crate) is_conditional: bool,
    /// The conditions under which the item exists, and so may its impls.
    pub(crate) cfgs: Vec<TokenStream>,
    pub(crate) is_deprecated: bool,
}

impl Target {
    /// Reads the item. Anything but a struct is one mistake, on the keyword.
    pub(crate) fn parse(item: TokenStream, errors: &mut Errors) -> Self {
        let mut item = unwrapped(item);
        let keyword = Keyword::find(&item);
        let header = match keyword.name() {
            "struct" => {
                let (attributes, rest) = split_attributes(item.clone());
                if let Some(attributes) = without_repetitions(attributes, errors) {
                    item = quote!(#(#attributes)* #rest);
                }
                definition.parse2(item.clone()).map_err(|error| errors.push(error)).ok()
            }
            "enum" | "union" => definition.parse2(item.clone()).ok(),
            "impl" => op_impl.parse2(item.clone()).ok(),
            _ => None,
        };
        let is_struct = keyword.name() == "struct";
        if !is_struct {
            errors.on(keyword.span(), keyword.objection());
        }
        let subject = header.map(|header| header.into_subject(errors));
        Self { item, subject, is_struct }
    }
}

/// An item that came through `macro_rules!` may arrive in an invisible group.
fn unwrapped(item: TokenStream) -> TokenStream {
    let mut tokens = item.clone().into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => {
            unwrapped(group.stream())
        }
        _ => item,
    }
}

fn split_attributes(item: TokenStream) -> (Vec<Attribute>, TokenStream) {
    let split = |input: ParseStream<'_>| Ok((input.call(Attribute::parse_outer)?, input.parse()?));
    split.parse2(item.clone()).unwrap_or_else(|_| (Vec::new(), item))
}

/// The attributes without further `#[autograd_function]`s, if there were any: they would repeat every impl.
fn without_repetitions(attributes: Vec<Attribute>, errors: &mut Errors) -> Option<Vec<Attribute>> {
    let (repeated, kept): (Vec<_>, Vec<_>) = attributes.into_iter().partition(|attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "autograd_function")
    });
    for attribute in &repeated {
        errors.at(attribute.path(), "a second `#[autograd_function]` on the same struct: keep one of them");
    }
    (!repeated.is_empty()).then_some(kept)
}

/// What the impls need to know of an item.
struct Header {
    attributes: Vec<Attribute>,
    name: String,
    self_type: TokenStream,
    generics: Generics,
}

/// A struct, enum or union up to its where clause.
fn definition(input: ParseStream<'_>) -> syn::Result<Header> {
    let attributes = input.call(Attribute::parse_outer)?;
    input.parse::<Visibility>()?;
    input.call(Ident::parse_any)?;
    let name: Ident = input.parse()?;
    let mut generics: Generics = input.parse()?;
    if input.peek(token::Paren) {
        input.parse::<Group>()?;
    }
    generics.where_clause = input.parse()?;
    input.parse::<TokenStream>()?;
    let (_, arguments, _) = generics.split_for_impl();
    let self_type = quote!(#name #arguments);
    Ok(Header { attributes, name: name.unraw().to_string(), self_type, generics })
}

/// `impl Op for X` or `impl ForwardOnly for X`: the attribute was meant for `X`.
fn op_impl(input: ParseStream<'_>) -> syn::Result<Header> {
    let attributes = input.call(Attribute::parse_outer)?;
    input.parse::<Token![impl]>()?;
    let mut generics: Generics = input.parse()?;
    let implemented: Path = input.parse()?;
    let is_formulas = |segment: &syn::PathSegment| segment.ident == "Op" || segment.ident == "ForwardOnly";
    if !implemented.segments.last().is_some_and(is_formulas) {
        return Err(input.error("another trait"));
    }
    input.parse::<Token![for]>()?;
    let self_type: Type = input.parse()?;
    generics.where_clause = input.parse()?;
    input.parse::<TokenStream>()?;
    Ok(Header { attributes, name: String::new(), self_type: self_type.into_token_stream(), generics })
}

impl Header {
    fn into_subject(self, errors: &mut Errors) -> Subject {
        let attributes = self.generics.params.iter().flat_map(attributes_of);
        let conditions: Vec<&Attribute> = attributes.filter(|attribute| is_cfg(attribute)).collect();
        for condition in &conditions {
            errors.at(
                condition,
                "a generic parameter cannot be conditional here: put the `#[cfg]` on the struct",
            );
        }
        Subject {
            name: self.name,
            self_type: self.self_type,
            is_conditional: !conditions.is_empty(),
            cfgs: self.attributes.iter().filter_map(condition).collect(),
            is_deprecated: self.attributes.iter().any(|attribute| attribute.path().is_ident("deprecated")),
            generics: self.generics,
        }
    }
}

fn attributes_of(parameter: &syn::GenericParam) -> &[Attribute] {
    match parameter {
        syn::GenericParam::Lifetime(parameter) => &parameter.attrs,
        syn::GenericParam::Type(parameter) => &parameter.attrs,
        syn::GenericParam::Const(parameter) => &parameter.attrs,
    }
}

fn is_cfg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

/// The part of an attribute that decides whether the item exists.
fn condition(attribute: &Attribute) -> Option<TokenStream> {
    if is_cfg(attribute) {
        return Some(attribute.to_token_stream());
    }
    let list = attribute.meta.require_list().ok()?;
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let mut pieces = split_at_commas(flat(list.tokens.clone()), &mut Errors::default()).into_iter();
    let predicate: TokenStream = pieces.next()?.into_iter().collect();
    let cfgs: Vec<TokenStream> = pieces
        .filter(|piece| matches!(piece.first(), Some(TokenTree::Ident(word)) if word == "cfg"))
        .map(|piece| piece.into_iter().collect())
        .collect();
    (!cfgs.is_empty()).then(|| quote!(#[cfg_attr(#predicate, #(#cfgs),*)]))
}
