//! The graph of what was computed, and the loop that sends gradients back through it.
//!
//! Generic over the engine. It knows nodes, not Functions: layer `function` makes nodes of those. All state of one
//! backward call is in its graph task; what is global is the sequence counter and each thread's grad mode.

mod accumulate_grad;
mod admission;
mod autocast;
mod backward;
mod checkpoint;
mod creation_hook;
mod edge;
mod grad_cell;
pub mod grad_mode;
pub(crate) mod graph_task;
mod hooks;
mod input_buffer;
mod label;
mod metadata;
mod node;
mod pass_through;
mod saved;
mod saved_hooks;
mod scoped;
mod tensor;
mod waiting;

pub(crate) use autocast::enter_region;
pub use autocast::{autocast, autocast_dtype};
pub use backward::{BackwardOptions, backward, grad};
pub use checkpoint::checkpoint;
pub use creation_hook::node_creation_hook;
pub use edge::drop_in_turn;
pub use edge::{Cut, Edge, Origin, OutputName};
pub use hooks::HookHandle;
pub use label::label;
pub use metadata::{InputMetadata, Metadata};
pub use node::{BackwardCall, BackwardStep, Node, NodeRef};
pub use pass_through::{differentiable_once, saved_intermediate};
pub use saved::{SavedInfo, SavedTensor};
pub(crate) use saved_hooks::are_active as saved_hooks_are_active;
pub use saved_hooks::{save_in, saved_tensors_hooks};
pub use tensor::{DynTensor, Gradients, Outputs};
