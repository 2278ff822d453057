//! What an output becomes: a tensor type in the contract, a slot in the declaration that `forward` makes.

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{WherePredicate, parse_quote};

use crate::check::Runtime;
use crate::spec::{Element, Gradient, Output, Spec};

/// The type of all outputs.
pub(super) fn types(spec: &Spec, runtime: &Runtime, engine: &Ident) -> TokenStream {
    let mut types = spec.outputs.iter().map(|output| tensor(output, runtime, engine));
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

/// What `forward` declares before anything else: nothing, where `grad` was not written.
pub(super) fn declaration(spec: &Spec, runtime: &Runtime) -> TokenStream {
    if !spec.declared {
        return TokenStream::new();
    }
    let runtime = runtime.at(Span::call_site());
    let slots = spec.outputs.iter().map(|output| slot(output, &runtime));
    let never =
        spec.outputs.iter().enumerate().filter(|(_, output)| matches!(output.gradient, Gradient::Never(_)));
    let never: Vec<Literal> = never.map(|(index, _)| Literal::usize_unsuffixed(index)).collect();
    let mark = (!never.is_empty()).then(|| {
        quote! {
            <#runtime::__private::Context<_>>::mark_non_differentiable(__ctx, &[#(#never),*]);
        }
    });
    quote! {
        <#runtime::__private::Context<_>>::set_output_grad_dtype(__ctx, &[#(#slots),*])?;
        #mark
    }
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
