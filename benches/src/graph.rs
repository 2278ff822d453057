//! A graph of a million nodes: is a node as cheap as one of a thousand, and how many bytes does it take?
//!
//! Peers run in a process of their own, since not all survive so long a chain.

use serde_json::json;

use crate::measure::{Column, Group};
use crate::node::{
    BurnChain, CandleChain, Chain, Declared, METRICS, NODES, OurChain, TapeChain, contender, sample,
};
use crate::torch::Torch;
use crate::{Outcome, child};

const MANY: usize = 1_000_000;

/// The groups of this module.
///
/// # Errors
/// Those of the libraries.
pub fn groups(torch: &Torch) -> Outcome<Vec<Group>> {
    let baseline = |name: &str| Column::Baseline(name.to_owned());
    let many = MANY.to_string();
    let time = |column, library: &str| child::contender(column, &["graph-time", library, &many]);
    let times = vec![
        contender(Column::Ours, OurChain::<Declared>::new()?, MANY),
        contender(baseline("hand-written tape"), TapeChain::new(), MANY),
        contender(baseline("the same, 1,000 nodes"), OurChain::<Declared>::new()?, NODES),
        time(Column::Candle, "candle"),
        time(Column::Burn, "burn"),
    ];
    let memory = |column, library: &str| child::contender(column, &["graph-memory", library, &many]);
    let bytes = vec![
        memory(Column::Ours, "gradpact"),
        memory(baseline("hand-written tape"), "tape"),
        memory(Column::Candle, "candle"),
        memory(Column::Burn, "burn"),
        torch.contender(json!({ "case": "node-memory", "nodes": MANY / 10 })),
    ];
    Ok(vec![
        Group::new("a node of a chain of 1,000,000", "ns", times).metrics(&METRICS).at_most(7),
        Group::new("memory of a node, with its saved tensor", "bytes", bytes).at_most(3),
    ])
}

/// The job of a child: nanoseconds per node of a chain, as [`METRICS`].
///
/// # Errors
/// If the library is unknown.
pub fn time(library: &str, nodes: usize) -> Outcome<Vec<f64>> {
    match library {
        "candle" => sample(&CandleChain::new()?, nodes),
        "burn" => sample(&BurnChain::new(), nodes),
        _ => Err(format!("unknown library {library}").into()),
    }
}

/// The job of a child: how many bytes the process grows by for each node.
///
/// # Errors
/// If the library is unknown.
pub fn memory(library: &str, nodes: usize) -> Outcome<Vec<f64>> {
    match library {
        "gradpact" => growth(&OurChain::<Declared>::new()?, nodes),
        "tape" => growth(&TapeChain::new(), nodes),
        "candle" => growth(&CandleChain::new()?, nodes),
        "burn" => growth(&BurnChain::new(), nodes),
        _ => Err(format!("unknown library {library}").into()),
    }
}

fn growth(chain: &impl Chain, nodes: usize) -> Outcome<Vec<f64>> {
    let before = child::resident()?;
    let end = chain.forward(nodes)?;
    let after = child::resident()?;
    // The process ends here. Not every library can drop so long a chain.
    std::mem::forget(end);
    Ok(vec![(after - before) / nodes as f64])
}
