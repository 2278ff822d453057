//! What an output becomes: a tensor type in the contract, a slot in the declaration that `forward` makes.

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

use crate::spec::{Element, Gradient, Output, Spec};

/// The type of all outputs.
pub(super) fn types(spec: &Spec, runtime: &TokenStream, engine: &Ident) -> TokenStream {
    let mut types = spec.outputs.iter().map(|output| tensor(output, runtime, engine));
    if spec.is_tuple { quote!((#(#types,)*)) } else { types.next().unwrap_or_default() }
}

/// What `forward` declares before anything else: nothing, where `grad` was not written.
pub(super) fn declaration(spec: &Spec, runtime: &TokenStream) -> TokenStream {
    if !spec.declared {
        return TokenStream::new();
    }
    let slots = spec.outputs.iter().map(|output| slot(output, runtime));
    let never =
        spec.outputs.iter().enumerate().filter(|(_, output)| matches!(output.gradient, Gradient::Never(_)));
    let never: Vec<Literal> = never.map(|(index, _)| Literal::usize_unsuffixed(index)).collect();
    let mark = (!never.is_empty()).then(|| {
        quote! {
            #runtime::__private::Context::mark_non_differentiable(__ctx, &[#(#never),*])?;
        }
    });
    quote! {
        #runtime::__private::Context::set_output_grad_dtype(__ctx, &[#(#slots),*])?;
        #mark
    }
}

/// `Tensor<D, G, E>`, blamed on the word for `D` where the compiler objects to it.
fn tensor(output: &Output, runtime: &TokenStream, engine: &Ident) -> TokenStream {
    let span = located(output.dtype.span());
    let runtime = &respanned(runtime, span);
    let dtype = element(&output.dtype, runtime);
    let gradient = match &output.gradient {
        Gradient::Own => dtype.clone(),
        Gradient::Exactly(gradient) => element(gradient, &respanned(runtime, located(gradient.span()))),
        Gradient::Any(span) => marker("AnyGrad", *span, runtime),
        Gradient::Never(span) => marker("NoGrad", *span, runtime),
    };
    quote_spanned!(span=> #runtime::__private::Tensor<#dtype, #gradient, #engine>)
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

fn element(element: &Element, runtime: &TokenStream) -> TokenStream {
    match element {
        Element::Word(dtype, span) => marker(dtype.name, *span, runtime),
        Element::Parameter(name) => quote!(#name),
    }
}

/// An item of the runtime, standing for a word of the attribute.
fn marker(name: &str, span: Span, runtime: &TokenStream) -> TokenStream {
    let span = located(span);
    let runtime = respanned(runtime, span);
    let name = Ident::new(name, span);
    quote_spanned!(span=> #runtime::__private::#name)
}

/// Points at the user's word and still counts as generated, so that lints about style leave it alone.
fn located(span: Span) -> Span {
    Span::call_site().located_at(span)
}

/// The same path, pointing elsewhere.
fn respanned(path: &TokenStream, span: Span) -> TokenStream {
    let respan = |mut token: TokenTree| {
        token.set_span(token.span().located_at(span));
        token
    };
    path.clone().into_iter().map(respan).collect()
}
