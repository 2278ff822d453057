//! Tensors whose dtypes are types, and Functions on them: the compiler's share of the contract.
//!
//! Adds no cost and no second implementation to the dynamic layer below it.

mod apply;
mod bridge;
mod forward_only;
mod grad_type;
mod join;
mod op;
mod saved;
mod tensor;
mod tensors;

pub use apply::Apply;
pub use bridge::{backward, forward};
pub use forward_only::{AllowsForwardOnly, AllowsOp, ForwardOnly, NoBackward, Written, no_backward};
pub use grad_type::{AnyGrad, Float, GradType, NoGrad, Untracked};
pub use join::{CastOver, FitsIn, Join, Over};
pub use op::{Contract, Op};
pub use saved::FromSaved;
pub use tensor::{Tensor, Value};
pub use tensors::{OutputSlot, OutputTensors, Slot, Tensors};
