//! The `#[autograd_function]` attribute. Users reach it through the `gradpact` crate, which documents it.
//!
//! Four stages: `parse` reads tokens, `check` applies every rule, [`Spec`](spec::Spec) holds what is legal, `expand` writes it
//! down. All mistakes are collected in one list and reported together, with the item emitted again beside them.

mod check;
mod dtype;
mod errors;
mod expand;
#[cfg(test)]
mod golden;
mod guess;
mod key;
mod parse;
mod spec;

use proc_macro2::TokenStream;

use crate::check::Runtime;
use crate::errors::Errors;
use crate::parse::{Arguments, Target};

/// DOC
#[proc_macro_attribute]
pub fn autograd_function(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    attribute(arguments.into(), item.into()).into()
}

fn attribute(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let target = Target::parse(item, &mut errors);
    // On the wrong item, what the arguments say is beside the point.
    let mut beside_the_point = Errors::default();
    let heard = if target.is_struct { &mut errors } else { &mut beside_the_point };
    let arguments = Arguments::parse(arguments, heard);
    let runtime = Runtime::check(&arguments.runtime, heard);
    let spec = check::check(&arguments, &target, errors);
    expand::expand(&target, runtime.path(), spec)
}
