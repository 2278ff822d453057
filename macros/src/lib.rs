//! The `#[autograd_function]` attribute. Users reach it through the `gradpact` crate, which documents it.
