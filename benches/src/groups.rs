//! The names of all groups, in the order of the table, with what measures them.

use crate::measure::Group;
use crate::torch::Torch;
use crate::{Outcome, audit, compile, edge, elementwise, graph, matmul, mlp, node, shapes};

/// Makes the groups of a module; large arrays are made only then.
pub type Make = fn(&Torch) -> Outcome<Vec<Group>>;

/// Name, what it is about, and what makes it.
pub const ALL: [(&str, &str, Make); 9] = [
    ("node", "a chain of 1,000 custom functions: time per node", node::groups),
    ("graph", "a chain of 1,000,000: time and memory per node", graph::groups),
    ("shapes", "chains, fans, ladders, leaves: time per node and edge", shapes::groups),
    ("edge", "conversion and sum of large gradients at an edge", edge::groups),
    ("elementwise", "operations on 16 Mi elements", elementwise::groups),
    ("matmul", "1024³ in f32, f16, bf16", matmul::groups),
    ("mlp", "a training step, and its peak memory", mlp::groups),
    ("audit", "what a running audit adds to work on 16 Mi elements", audit::groups),
    ("compile", "500 Functions annotated and by hand; a clean build", compile::groups),
];
