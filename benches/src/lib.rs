//! gradpact against its peers, in one run.
//!
//! The program is `cargo run --release -p gradpact-benches --bin compare`; `docs/performance.md` tells what it measures and how. A
//! *group* is one thing that is measured; its *contenders* take turns. What a group measures is in the module named like it.
//!
//! | module | subject |
//! | --- | --- |
//! | [`measure`] | contenders, rounds, medians and quartiles |
//! | [`table`], [`options`] | what is printed, what can be asked for |
//! | [`torch`], [`child`] | contenders in a process of their own: Python, and for memory |
//! | [`tape`] | the least that a tape can be: what a node is compared with |
//! | [`node`], [`graph`], [`shapes`] | what nodes cost |
//! | [`edge`], [`elementwise`], [`matmul`] | what large arrays cost |
//! | [`mlp`], [`compile`] | what a training step costs, and building the crate |
//! | [`audit`] | what looking on costs |
//! | [`instructions`] | what nodes cost without a clock |

pub mod audit;
pub mod child;
pub mod compile;
pub mod edge;
pub mod elementwise;
pub mod graph;
pub mod groups;
pub mod instructions;
pub mod matmul;
pub mod measure;
pub mod mlp;
pub mod node;
pub mod options;
pub mod shapes;
pub mod table;
pub mod tape;
pub mod torch;

/// What can go wrong in a benchmark: anything.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
