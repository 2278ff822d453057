//! Where we differ from PyTorch 2.14.1 on purpose. Each measured case that shows a difference names one of these.

use gradpact::{DType, GradDType};

use super::num::Num;
use crate::format;

/// A rule of ours that PyTorch does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Gradient dtypes pass through built-in operations.
    Carried,
    /// A conversion from `f64` rounds once.
    RoundedOnce,
    /// Where any dtype is taken, gradients are added in the widest, whatever the order.
    WidestSum,
    /// Sums of 8- and 16-bit gradients are formed in `f32` and rounded once.
    WideSum,
    /// Zeros for a gradient that never came have the declared dtype.
    DeclaredZeros,
    /// An integer output may declare a floating gradient.
    StraightThrough,
    /// A declared dtype that no gradient can have is an error of `apply`.
    DeclaredNotFloat,
    /// An integer or `bool` seed is an error.
    IntegerSeed,
    /// An integer or `bool` gradient returned by backward is an error.
    IntegerGradient,
    /// A gradient of a larger shape is an error.
    LargerShape,
    /// Each output is one of its own, also if forward returned the same tensor twice.
    OutputsApart,
    /// A non-leaf tells its gradient dtype.
    Readable,
    /// A second derivative through a Function that is differentiable once is an error also where it goes to the inputs alone.
    OnceIsSaid,
    /// A check of gradients checks their contract too.
    ContractChecked,
    /// A gradient dtype is set on leaves, and integers have none.
    LeavesHaveOne,
    /// The node of a leaf is created with the leaf.
    LeafsNode,
    /// A backward runs in the autocast region of its forward.
    BackwardInRegion,
    /// Matrices of two dtypes are multiplied in the wider.
    MixedProducts,
    /// A checkpoint keeps the contracts of what runs in it.
    CheckpointKeeps,
    /// A backward cannot change the gradient that its caller holds.
    Immutable,
    /// A host fetches what was saved before it calls backward.
    FetchedFirst,
    /// A host takes gradients that are dense.
    Dense,
}

/// The rules that only hosts have, what PyTorch does, and why they do otherwise.
pub const OF_HOSTS: [(Rule, &str); 2] = [
    (
        Rule::FetchedFirst,
        "a saved tensor that was changed in place is found out when backward asks for it; a host fetches all of them before \
         it calls backward, which does not run then",
    ),
    (Rule::Dense, "a sparse gradient goes on as it is; in a host it is an error, as are all sparse tensors"),
];

/// Every rule of the embedded engine, what PyTorch does, and why we do otherwise.
pub const REASONS: [(Rule, &str); 20] = [
    (
        Rule::Carried,
        "an operation rounds the gradient to its own storage dtype before the contract sees it; here built-in \
         operations carry the gradient dtype of their inputs, `any` included",
    ),
    (Rule::RoundedOnce, "f64 to f16, bf16 and the 8-bit floats goes through f32 and rounds twice; here once"),
    (
        Rule::WidestSum,
        "with None the dtype of a sum is that of whichever gradient came first, or of both promoted, or an error; \
         here it is the widest, in any order",
    ),
    (
        Rule::WideSum,
        "8- and 16-bit sums are rounded at every step, or not supported; here they are formed in f32 and rounded once",
    ),
    (
        Rule::DeclaredZeros,
        "zeros for an unused output come in the output's storage dtype; here in the declared dtype, so that backward \
         gets what it was promised",
    ),
    (
        Rule::StraightThrough,
        "an integer output cannot carry a gradient; here it can if a floating gradient is declared",
    ),
    (
        Rule::DeclaredNotFloat,
        "an integer gradient dtype is accepted and fails in backward with an internal assertion, or is never noticed; \
         here apply refuses it, whether or not anything is recorded",
    ),
    (Rule::IntegerSeed, "an integer or bool seed is converted silently; here it is an error"),
    (Rule::IntegerGradient, "an integer or bool gradient is converted silently; here it is an error"),
    (
        Rule::LargerShape,
        "a gradient of a larger shape is summed silently, in its own dtype; here it is an error that names both shapes",
    ),
    (
        Rule::OutputsApart,
        "a tensor returned twice is one tensor, and the last slot gets both gradients; here each output has its own",
    ),
    (Rule::Readable, "the gradient dtype of a non-leaf cannot be read; here it can"),
    (
        Rule::OnceIsSaid,
        "with once_differentiable, and a gradient that requires none, the result has silently no graph, though it may \
         depend on the inputs; here a second derivative through it is an error all the same",
    ),
    (
        Rule::LeavesHaveOne,
        "a gradient dtype can be set where no gradient will ever be, on untracked and on integer tensors, and an integer \
         gradient can be given to a leaf; here all three are errors, and an integer tensor has no gradient dtype",
    ),
    (
        Rule::LeafsNode,
        "the node of a leaf is created when the leaf is first used, again if it was dropped meanwhile; here with the leaf, \
         once, so that is when a node creation hook sees it",
    ),
    (
        Rule::BackwardInRegion,
        "backward runs outside the autocast region of its forward, unless custom_fwd and custom_bwd say otherwise; here \
         always in it, wherever it is called",
    ),
    (
        Rule::MixedProducts,
        "a product of matrices of two dtypes is an error; here they are promoted as in any operation",
    ),
    (
        Rule::CheckpointKeeps,
        "a reentrant checkpoint is a node of its own, which rounds the gradient to its storage dtype; here checkpoints add \
         no node, and every contract holds",
    ),
    (
        Rule::Immutable,
        "a backward that changes its gradient in place changes the caller's, if no conversion came between; here tensors \
         do not change",
    ),
    (
        Rule::ContractChecked,
        "gradcheck passes whatever gradient dtype is declared and whatever dtype backward returns; here it fails where \
         a gradient is held in a narrower dtype than its values, or returned in another than the input's gradient has",
    ),
];

/// PyTorch's way of converting, or ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What was measured.
    PyTorch,
    /// What we promise.
    Ours,
}

/// A conversion, by exact arithmetic.
pub fn convert(way: Way, num: &Num, dtype: DType) -> Num {
    let small = !matches!(dtype, DType::F32 | DType::F64);
    if way == Way::PyTorch && num.dtype == DType::F64 && small {
        return num.rounded(DType::F32).rounded(dtype);
    }
    num.rounded(dtype)
}

/// Admission to an edge: converted to the dtype that it asks for, if it asks for one.
pub fn admitted(way: Way, num: &Num, contract: GradDType) -> Num {
    match contract.dtype() {
        Some(dtype) => convert(way, num, dtype),
        None => num.clone(),
    }
}

/// The gradient dtype of an operation's result stored in `storage`, whose input's gradient dtype is `input`.
pub fn carried(storage: DType, input: GradDType) -> GradDType {
    match input {
        GradDType::Any => GradDType::Any,
        GradDType::Exactly(dtype) => GradDType::Exactly(format::meeting(storage, dtype)),
    }
}
