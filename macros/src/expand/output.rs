//! What an output becomes: a tensor type in the contract, a slot in the declaration that `forward` makes.

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{WherePredicate, parse_quote};

use crate::check::Runtime;
use crate::spec::{Backward, Element, Gradient, Output, Policy, Spec, Terms};

/// The type of all outputs.
pub(super) fn types(spec: &Spec, runtime: &Runtime, engine: &Ident) -> TokenStream {
    listed(spec, |output| tensor(output, runtime, engine))
}

/// The type of all outputs as backward sees them, where that is not the same.
pub(super) fn received(spec: &Spec, runtime: &Runtime, engine: &Ident) -> Option<TokenStream> {
    let Backward::Written(Terms { materialize: false, .. }) = &spec.backward else { return None };
    let at_call = runtime.at(Span::call_site());
    Some(listed(spec, |output| {
        let tensor = tensor(output, runtime, engine);
        if output.has_gradient() { quote!(#at_call::__private::Option<#tensor>) } else { tensor }
    }))
}

/// The marker of whether there is a backward.
pub(super) fn backward(spec: &Spec) -> Ident {
    match &spec.backward {
        Backward::Written(_) => format_ident!("Written"),
        Backward::None => format_ident!("NoBackward"),
    }
}

/// One type for each output, as a tuple if the outputs were written as one.
fn listed(spec: &Spec, of: impl Fn(&Output) -> TokenStream) -> TokenStream {
    let mut types = spec.outputs.iter().map(of);
    if !spec.is_tuple {
        return types.next().unwrap_or_default();
    }
    let mut tuple = Group::new(Delimiter::Parenthesis, quote!(#(#types,)*));
    let parameter = spec.outputs.iter().flat_map(Output::parameters).next();
    tuple.set_span(parameter.map_or_else(Span::call_site, |parameter| located(parameter.span())));
    quote!(#tuple)
}

/// What the declaration takes for granted of type parameters. Where they lack it, the contract is told, once.
pub(super) fn bounds(spec: &Spec, runtime: &Runtime) -> Vec<WherePredicate> {
    let runtime = runtime.at(Span::call_site());
    let parameters = spec.outputs.iter().filter_map(|output| match &output.gradient {
        Gradient::Exactly(gradient) => gradient.parameter(),
        Gradient::Own | Gradient::Any(_) | Gradient::Never(_) => None,
    });
    parameters.map(|name| parse_quote!(#name: #runtime::__private::Element)).collect()
}

/// What `forward` declares before anything else: what was written, and no more.
pub(super) fn declaration(spec: &Spec, runtime: &Runtime) -> TokenStream {
    let runtime = runtime.at(Span::call_site());
    let context = quote!(<#runtime::__private::Context<_>>);
    let Backward::Written(terms) = &spec.backward else { return mark(spec, |_| true, &context) };
    let dtypes = terms.declared.then(|| {
        let slots = spec.outputs.iter().map(|output| slot(output, &runtime));
        let mark = mark(spec, |output| matches!(output.gradient, Gradient::Never(_)), &context);
        quote! {
            #context::set_output_grad_dtype(__ctx, &[#(#slots),*])?;
            #mark
        }
    });
    let policy = terms.policy.map(|policy| {
        let variant = match policy {
            Policy::Cast => format_ident!("Cast"),
            Policy::Strict => format_ident!("Strict"),
        };
        quote!(#context::set_policy(__ctx, #runtime::__private::Policy::#variant);)
    });
    let materialize = (!terms.materialize).then(|| quote!(#context::set_materialize_grads(__ctx, false);));
    let once = terms.once.then(|| quote!(#context::mark_once_differentiable(__ctx);));
    quote!(#dtypes #policy #materialize #once)
}

/// The call that marks some outputs as having no gradient, if there are any.
fn mark(spec: &Spec, is_marked: impl Fn(&Output) -> bool, context: &TokenStream) -> TokenStream {
    let marked = spec.outputs.iter().enumerate().filter(|(_, output)| is_marked(output));
    let marked: Vec<Literal> = marked.map(|(index, _)| Literal::usize_unsuffixed(index)).collect();
    if marked.is_empty() {
        return TokenStream::new();
    }
    quote!(#context::mark_non_differentiable(__ctx, &[#(#marked),*]);)
}

/// `Tensor<D, G, E>`, blamed on the type parameters among `D` and `G` where the compiler objects to it.
fn tensor(output: &Output, runtime: &Runtime, engine: &Ident) -> TokenStream {
    let dtype = element(&output.dtype, runtime);
    let gradient = match &output.gradient {
        Gradient::Own => dtype.clone(),
        Gradient::Exactly(gradient) => element(gradient, runtime),
        Gradient::Any(span) => marker("AnyGrad", *span, runtime),
        Gradient::Never(span) => marker("NoGrad", *span, runtime),
    };
    let mut parameters = output.parameters();
    let first = parameters.next().map_or_else(|| output.dtype.span(), Ident::span);
    let last = parameters.last().map_or(first, Ident::span);
    let (start, end) = (located(first), located(last));
    let runtime = runtime.at(start);
    let close = quote_spanned!(end=> >);
    quote_spanned!(start=> #runtime::__private::Tensor<#dtype, #gradient, #engine #close)
}

/// What `set_output_grad_dtype` is told of one output.
fn slot(output: &Output, runtime: &TokenStream) -> TokenStream {
    let dtype = match &output.gradient {
        Gradient::Exactly(Element::Word(dtype, _)) => {
            let variant = Ident::new(dtype.variant, Span::call_site());
            quote!(#runtime::__private::DType::#variant)
        }
        Gradient::Exactly(Element::Parameter(name)) => {
            quote!(<#name as #runtime::__private::Element>::DTYPE)
        }
        Gradient::Own | Gradient::Any(_) | Gradient::Never(_) => {
            return quote!(#runtime::__private::GradDType::Any);
        }
    };
    quote!(#runtime::__private::GradDType::Exactly(#dtype))
}

fn element(element: &Element, runtime: &Runtime) -> TokenStream {
    match element {
        Element::Word(dtype, span) => marker(dtype.name, *span, runtime),
        Element::Parameter(name) => quote!(#name),
    }
}

/// An item of the runtime, standing for a word of the attribute.
fn marker(name: &str, span: Span, runtime: &Runtime) -> TokenStream {
    let span = located(span);
    let runtime = runtime.at(span);
    let name = Ident::new(name, span);
    quote_spanned!(span=> #runtime::__private::#name)
}

/// Points at the user's word and still counts as generated, so that lints about style leave it alone.
fn located(span: Span) -> Span {
    Span::call_site().located_at(span)
}
