//! The `#[autograd_function]` attribute. Users reach it through the `gradpact` crate, which documents it.
//!
//! Four stages: `parse` reads tokens, `check` applies every rule, `Spec` holds what is legal, `expand` writes it
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
#[cfg(test)]
mod robustness;
mod spec;

use proc_macro2::TokenStream;

use crate::check::Runtime;
use crate::errors::Errors;
use crate::parse::{Arguments, Slot, Target};

/// Declares in which dtype each output of a Function is stored, and in which its gradient reaches `backward`.
///
/// ```text
/// #[autograd_function(out = f16, grad = f32)]
/// struct Silu;
/// ```
///
/// The struct gets its contract; its formulas are written in `impl Op for Silu`. `forward` then returns a `Value<f16>` and
/// `backward` is given a `Value<f32>`, whatever happened to the output in between. The struct can be a unit, tuple or
/// named one, with generics, defaults and where clauses; it is left as it is.
///
/// # Keys
///
/// | Key | Value | Meaning |
/// |---|---|---|
/// | `out` | a dtype, or a tuple of up to eight | storage dtype of each output; required |
/// | `grad` | a floating dtype, `any`, `none`, or a tuple | the dtype in which backward receives that output's gradient |
/// | `policy` | `cast` or `strict` | what a gradient of another dtype gets: a conversion (the default), or an error before backward runs |
/// | `materialize` | `true` or `false` | what backward receives for an unused output: zeros (the default), or `None` |
/// | `once` | none, it is a flag | backward is not differentiable itself: a second derivative through it is an error |
/// | `backward` | `none` | there is no derivative; the formula is written in `impl ForwardOnly` |
/// | `crate` | a path | where the runtime is found, if it is renamed or re-exported; otherwise `::gradpact` |
///
/// Without `grad`, an output's gradient has the output's own dtype, and an integer output has none.
///
/// | `grad` | `backward` receives |
/// |---|---|
/// | `f32` (or another floating dtype) | a gradient of that dtype, also for an integer output (a straight-through gradient) |
/// | `any` | the gradient as it comes |
/// | `none` | nothing: the output is not differentiable |
///
/// With `materialize = false` each of these gradients is an `Option`: `Option<Value<f32>>`, `Option<DynTensor>`, and still `()` for an
/// output that is not differentiable.
///
/// A tuple has one word for each output, in their order: `out = (f16, i64), grad = (f32, none)`. As everywhere in Rust,
/// `(f16,)` is a tuple of one and `(f16)` is not a tuple.
///
/// What a key has settled, forward cannot change: `ctx.set_policy` under `policy` is an error of `apply`, like the other
/// declarations, and so is `ctx.mark_once_differentiable` under `once`. Without these keys both may be called, since no
/// type depends on them.
///
/// # Functions without a derivative
///
/// ```text
/// #[autograd_function(out = i64, backward = none)]
/// struct ArgMax;
///
/// impl ForwardOnly for ArgMax {
///     type Inputs = Tensor<f32>;
///
///     fn forward(&self, x: Value<f32>) -> Result<Value<i64>> { … }
/// }
/// ```
///
/// No output has a gradient: floating ones are `Tensor<f16, NoGrad>`. Asking for one is an error that names the Function. `grad`,
/// `policy`, `materialize` and `once` have nothing to say here.
///
/// # Dtypes
///
/// `f16`, `bf16`, `f32`, `f64`, `f8e4m3`, `f8e5m2`, `i8`, `i16`, `i32`, `i64`, `u8`, `bool`, or the name of a type
/// parameter of the struct:
///
/// ```text
/// #[autograd_function(out = T, grad = f32)]
/// struct Round<T: Element> {
///     step: T,
/// }
/// ```
///
/// They are words of this attribute: it does not matter which types of these names are in scope.
///
/// # Mistakes
///
/// All mistakes are reported at once, each on the word that is wrong.
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
    let may_lack_backward = !matches!(arguments.backward, Slot::Absent);
    expand::expand(&target, &runtime, spec, may_lack_backward)
}
