//! Last stage: the item and its impls. These only name things of the runtime; what has a body lives there.

mod output;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Generics, WherePredicate, parse_quote};

use crate::check::Runtime;
use crate::errors::Errors;
use crate::parse::{Subject, Target};
use crate::spec::{Backward, Spec};

/// The item with its contract, or with what is wrong about it. Where that is unknown, `may_lack_backward` says whether the
/// formulas may be those of a Function without one.
pub(crate) fn expand(
    target: &Target,
    runtime: &Runtime,
    spec: Result<Spec, Errors>,
    may_lack_backward: bool,
) -> TokenStream {
    let item = &target.item;
    let nameable = target.subject.as_ref().filter(|subject| !subject.is_conditional && !runtime.is_missing());
    let impls = nameable.map(|subject| Impls::new(subject, runtime));
    match (impls, spec) {
        (Some(impls), Ok(spec)) => {
            let bounds = output::bounds(&spec, impls.runtime);
            let contract = impls.contract(&impls.terms(&spec), &bounds);
            let op = matches!(spec.backward, Backward::None).then(|| impls.op(&bounds));
            let function = impls.function(&output::declaration(&spec, impls.runtime), &bounds);
            quote!(#item #contract #op #function)
        }
        (Some(impls), Err(errors)) => {
            let (first, others) = errors.into_tokens(&impls.subject.cfgs);
            let contract = impls.contract(&impls.broken_terms(&first), &[]);
            let op = may_lack_backward.then(|| impls.op(&[]));
            let function = impls.function(&TokenStream::new(), &[]);
            quote!(#item #contract #op #function #others)
        }
        (None, Ok(_)) => item.clone(),
        (None, Err(errors)) => {
            let (first, others) = errors.into_tokens(&[]);
            quote!(#item #first #others)
        }
    }
}

/// What the impls have in common.
struct Impls<'a> {
    subject: &'a Subject,
    runtime: &'a Runtime,
    /// The name of the engine's type parameter.
    engine: Ident,
    /// Attributes of each.
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

    /// The types of a contract.
    fn terms(&self, spec: &Spec) -> TokenStream {
        let Self { runtime, engine, .. } = self;
        let outputs = output::types(spec, runtime, engine);
        let received =
            output::received(spec, runtime, engine).unwrap_or_else(|| quote!(Self::Outputs<#engine>));
        let backward = output::backward(spec);
        let runtime = runtime.at(Span::call_site());
        quote! {
            type Outputs<#engine: #runtime::__private::Engine> = #outputs;
            type Received<#engine: #runtime::__private::Engine> = #received;
            type Backward = #runtime::__private::#backward;
        }
    }

    /// The types of a contract that is not known. The compiler reports nothing further about a type with an error in it, and
    /// whatever depends on it.
    fn broken_terms(&self, error: &TokenStream) -> TokenStream {
        let engine = &self.engine;
        let runtime = self.runtime.at(Span::call_site());
        quote! {
            type Outputs<#engine: #runtime::__private::Engine> = [(); #error];
            type Received<#engine: #runtime::__private::Engine> = Self::Outputs<#engine>;
            type Backward = Self::Outputs<#runtime::__private::Cpu>;
        }
    }

    fn contract(&self, terms: &TokenStream, bounds: &[WherePredicate]) -> TokenStream {
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
                #terms
                fn record<#engine: #runtime::__private::Graph>(
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

    /// What a Function without a backward does as an `Op`.
    fn op(&self, bounds: &[WherePredicate]) -> TokenStream {
        let Self { subject, engine, attributes, .. } = self;
        let Subject { name, self_type, .. } = subject;
        let runtime = self.runtime.at(Span::call_site());
        let runtime = quote!(#runtime::__private);
        let generics = self.generics_with_engine(bounds, &format_ident!("ForwardOnly"));
        let (parameters, _, conditions) = generics.split_for_impl();
        quote! {
            #attributes
            impl #parameters #runtime::Op<#engine> for #self_type #conditions {
                type Inputs = <Self as #runtime::ForwardOnly<#engine>>::Inputs;
                fn forward(
                    &self,
                    _: &mut #runtime::Context<#engine>,
                    __inputs: <Self::Inputs as #runtime::Tensors<#engine>>::Values,
                ) -> #runtime::Result<<Self::Outputs<#engine> as #runtime::Tensors<#engine>>::Values> {
                    <Self as #runtime::ForwardOnly<#engine>>::forward(self, __inputs)
                }
                fn backward(
                    &self,
                    _: &#runtime::Context<#engine>,
                    _: <Self::Received<#engine> as #runtime::Tensors<#engine>>::Grads,
                ) -> #runtime::Result<<Self::Inputs as #runtime::Tensors<#engine>>::Grads> {
                    #runtime::no_backward(#name)
                }
            }
        }
    }

    /// The generics of the item and the engine's, for what implements a trait of formulas.
    fn generics_with_engine(&self, bounds: &[WherePredicate], formulas: &Ident) -> Generics {
        let engine = &self.engine;
        let runtime = self.runtime.at(Span::call_site());
        let mut generics = self.subject.generics.clone();
        generics.params.push(parse_quote!(#engine: #runtime::__private::Engine));
        let conditions = &mut generics.make_where_clause().predicates;
        conditions.extend(bounds.iter().cloned());
        conditions.push(parse_quote!(Self: #runtime::__private::#formulas<#engine>));
        generics
    }

    fn function(&self, declaration: &TokenStream, bounds: &[WherePredicate]) -> TokenStream {
        let Self { subject, engine, attributes, .. } = self;
        let runtime = self.runtime.at(Span::call_site());
        let Subject { name, self_type, .. } = subject;
        let generics = self.generics_with_engine(bounds, &format_ident!("Op"));
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
