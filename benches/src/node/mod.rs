//! What a node costs: a chain of custom functions on one element, forward, backward and drop.
//!
//! In every library the function is the same: it passes its input on, saves it, and passes the gradient on. So the time is that of
//! the bookkeeping.

mod burn;
mod candle;
mod ours;

pub use burn::BurnChain;
pub use candle::CandleChain;
pub use ours::{Declared, DynamicChain, OurChain, Pass, TypedChain, Undeclared};

use serde_json::json;

use crate::Outcome;
use crate::measure::{Column, Contender, Group, timed};
use crate::tape::Tensor as TapeTensor;
use crate::torch::Torch;

/// How many nodes an ordinary chain has.
pub const NODES: usize = 1_000;

/// What is measured of a chain.
pub const METRICS: [&str; 4] = ["forward", "backward", "drop", "forward + backward"];

/// A chain of functions in some library, beginning at a leaf.
pub trait Chain: 'static {
    /// The tensor at its end, which holds the graph.
    type End;
    /// What is left after a backward, the graph included if the library keeps it.
    type Rest;

    /// Whether the graph is there until its end is dropped; else backward has used it up, and drop is not measured.
    const KEEPS_GRAPH: bool = true;

    /// Applies the function `nodes` times.
    ///
    /// # Errors
    /// Those of the library.
    fn forward(&self, nodes: usize) -> Outcome<Self::End>;

    /// Sends a gradient of one from the end to the leaf.
    ///
    /// # Errors
    /// Those of the library.
    fn backward(&self, end: Self::End) -> Outcome<Self::Rest>;
}

/// One chain of `nodes`: nanoseconds per node, for each of [`METRICS`].
///
/// # Errors
/// Those of the library.
pub fn sample<C: Chain>(chain: &C, nodes: usize) -> Outcome<Vec<f64>> {
    let (end, forward) = timed(|| chain.forward(nodes))?;
    let (rest, backward) = timed(|| chain.backward(end))?;
    let ((), dropping) = timed(|| {
        drop(rest);
        Ok(())
    })?;
    let dropping = if C::KEEPS_GRAPH { dropping } else { f64::NAN };
    let seconds = [forward, backward, dropping, forward + backward];
    Ok(seconds.map(|seconds| seconds * 1e9 / nodes as f64).to_vec())
}

/// A contender that builds chains of `nodes`.
pub fn contender(column: Column, chain: impl Chain, nodes: usize) -> Contender {
    Contender::repeating(column, move || sample(&chain, nodes))
}

/// The chain of the hand-written tape.
#[derive(Debug)]
pub struct TapeChain {
    leaf: TapeTensor,
}

impl TapeChain {
    /// A chain on one element.
    pub fn new() -> Self {
        Self { leaf: TapeTensor::leaf(&[1.5]) }
    }
}

impl Default for TapeChain {
    fn default() -> Self {
        Self::new()
    }
}

impl Chain for TapeChain {
    type End = TapeTensor;
    type Rest = TapeTensor;

    fn forward(&self, nodes: usize) -> Outcome<TapeTensor> {
        self.leaf.take_grad();
        Ok((0..nodes).fold(self.leaf.clone(), |y, _| TapeTensor::pass(&[&y])))
    }

    fn backward(&self, end: TapeTensor) -> Outcome<TapeTensor> {
        end.backward(&[1.0]);
        Ok(end)
    }
}

/// The groups of this module.
///
/// # Errors
/// Those of the libraries.
pub fn groups(torch: &Torch) -> Outcome<Vec<Group>> {
    let baseline = |name: &str| Column::Baseline(name.to_owned());
    let contenders = vec![
        contender(Column::Ours, OurChain::<Declared>::new()?, NODES),
        contender(baseline("hand-written tape"), TapeChain::new(), NODES),
        contender(baseline("the same, undeclared"), OurChain::<Undeclared>::new()?, NODES),
        contender(baseline("the same, one hook at the leaf"), OurChain::<Declared>::with_hook()?, NODES),
        contender(baseline("the same without types"), DynamicChain::new()?, NODES),
        contender(Column::Candle, CandleChain::new()?, NODES),
        contender(Column::Burn, BurnChain::new(), NODES),
        torch.contender(json!({ "case": "node", "nodes": NODES })),
    ];
    Ok(vec![Group::new("a node of a chain of 1,000", "ns", contenders).metrics(&METRICS)])
}
