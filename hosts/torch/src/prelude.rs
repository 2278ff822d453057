//! What a file that defines or uses Functions on tensors of tch needs: `use gradpact_torch::prelude::*;`.
//!
//! The prelude of gradpact, in which [`Tensor`], [`Value`] and the others are those of this engine.

pub use gradpact::prelude::*;

pub use crate::{FromTch, Torch};

/// A tensor of tch with its storage dtype and its gradient dtype.
pub type Tensor<D, G = D> = gradpact::Tensor<D, G, Torch>;

/// A tensor of tch inside `forward` and `backward`.
pub type Value<D> = gradpact::Value<D, Torch>;

/// A tensor of tch whose dtypes are known at run time.
pub type DynTensor = gradpact::DynTensor<Torch>;

/// The context of a forward and its backward.
pub type Context = gradpact::Context<Torch>;

/// The inputs of a forward, by position.
pub type Inputs<'a> = gradpact::Inputs<'a, Torch>;

/// What a forward returns.
pub type Outputs = gradpact::Outputs<Torch>;

/// Gradients by position.
pub type Gradients = gradpact::Gradients<Torch>;
