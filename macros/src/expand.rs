//! Last stage: the item and its impls. These only name things of the runtime; what has a body lives there.

mod output;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{WherePredicate, parse_quote};

use crate::check::Runtime;
use crate::errors::Errors;
use crate::parse::{Subject, Target};
use crate::spec::Spec;

/// The item with its contract, or with what is wrong about it.
pub(crate) fn expand(target: &Target, runtime: &Runtime, spec: Result<Spec, Errors>) -> TokenStream {
    let item = &target.item;
    let nameable = target.subject.as_ref().filter(|subject| !subject.is_conditional && !runtime.is_missing());
    let impls = nameable.map(|subject| Impls::new(subject, runtime));
    match (impls, spec) {
        (Some(impls), Ok(spec)) => {
            let bounds = output::bounds(&spec, impls.runtime);
            let contract = impls.contract(&output::types(&spec, impls.runtime, &impls.engine), &bounds);
            let declaration = output::declaration(&spec, impls.runtime);
            let function = impls.function(&declaration, &bounds);
            quote!(#item #contract #function)
        }
        (Some(impls), Err(errors)) => {
            let (first, others) = errors.into_tokens(&impls.subject.cfgs);
            // The compiler reports nothing further about a type with an error in it, and whatever depends on it.
            let contract = impls.contract(&quote!([(); #first]), &[]);
            let function = impls.function(&TokenStream::new(), &[]);
            quote!(#item #contract #function #others)
        }
        (None, Ok(_)) => item.clone(),
        (None, Err(errors)) => {
            let (first, others) = errors.into_tokens(&[]);
            quote!(#item #first #others)
        }
    }
}

/// What the two impls have in common.
struct Impls<'a> {
    subject: &'a Subject,
    runtime: &'a Runtime,
    /// The name of the engine's type parameter.
    engine: Ident,
    /// Attributes of both.
    attributes: TokenStream,
}

impl<'a> Impls<'a> {
    fn new(subject: &'a Subject, runtime: &'a Runtime) -> Self {
        let cfgs = &subject.cfgs;
        // The impls mention a type whose use is discouraged, and are not a use of it.
        let allow = subject.is_deprecated.then(|| quote!(#[allow(deprecated)]));
        let attributes = quote!(#(#cfgs)* #allow #[automatically_derived]);
        Self { subject, runtime, engine: free_name(subject, runtime.at(Span::call_site())), attributes }
    }

    fn contract(&self, outputs: &TokenStream, bounds: &[WherePredicate]) -> TokenStream {
        let Self { subject, engine, attributes, .. } = self;
        let runtime = self.runtime.at(Span::call_site());
        let self_type = &subject.self_type;
        let mut generics = subject.generics.clone();
        if !bounds.is_empty() {
            generics.make_where_clause().predicates.extend(bounds.iter().cloned());
        }
        let (parameters, _, conditions) = generics.split_for_impl();
        quote! {
            #attributes
            impl #parameters #runtime::__private::Contract for #self_type #conditions {
                type Outputs<#engine: #runtime::__private::Engine> = #outputs;
                fn record<#engine: #runtime::__private::Engine>(
                    self,
                    __inputs: &#runtime::__private::GivenInputs<'_, #engine>,
                ) -> #runtime::__private::Result<#runtime::__private::Outputs<#engine>>
                where
                    Self: #runtime::__private::Op<#engine>,
                {
                    #runtime::__private::apply_optional(self, __inputs)
                }
            }
        }
    }

    fn function(&self, declaration: &TokenStream, bounds: &[WherePredicate]) -> TokenStream {
        let Self { subject, engine, attributes, .. } = self;
        let runtime = self.runtime.at(Span::call_site());
        let Subject { name, self_type, .. } = subject;
        let mut generics = subject.generics.clone();
        generics.params.push(parse_quote!(#engine: #runtime::__private::Engine));
        let conditions = &mut generics.make_where_clause().predicates;
        conditions.extend(bounds.iter().cloned());
        conditions.push(parse_quote!(Self: #runtime::__private::Op<#engine>));
        let (parameters, _, conditions) = generics.split_for_impl();
        quote! {
            #attributes
            impl #parameters #runtime::__private::Function<#engine> for #self_type #conditions {
                fn name(&self) -> &'static #runtime::__private::str {
                    #name
                }
                fn forward(
                    &self,
                    __ctx: &mut #runtime::__private::Context<#engine>,
                    __inputs: &#runtime::__private::Inputs<'_, #engine>,
                ) -> #runtime::__private::Result<#runtime::__private::Outputs<#engine>> {
                    #declaration
                    #runtime::__private::forward(self, __ctx, __inputs)
                }
                fn backward(
                    &self,
                    __ctx: &#runtime::__private::Context<#engine>,
                    __grads: #runtime::__private::Gradients<#engine>,
                ) -> #runtime::__private::Result<#runtime::__private::Gradients<#engine>> {
                    #runtime::__private::backward(self, __ctx, __grads)
                }
            }
        }
    }
}

/// A name for the engine's type parameter that nothing else in the impls has.
fn free_name(subject: &Subject, runtime: TokenStream) -> Ident {
    let mut used = Vec::new();
    collect_words(runtime, &mut used);
    collect_words(subject.self_type.clone(), &mut used);
    collect_words(subject.generics.params.to_token_stream(), &mut used);
    collect_words(subject.generics.where_clause.to_token_stream(), &mut used);
    let mut name = format_ident!("__E");
    while used.contains(&name) {
        name = format_ident!("{name}_");
    }
    name
}

fn collect_words(tokens: TokenStream, words: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => words.push(word),
            TokenTree::Group(group) => collect_words(group.stream(), words),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
