//! What a node costs without a clock: the instructions of each phase, counted by valgrind.
//!
//! The program `instructions` runs itself under callgrind, which counts only inside the function of one phase, for two lengths of the
//! chain. The difference, by the number of nodes between them, is what a node costs; what happens once falls out. Such counts
//! repeat to the instruction, so they show what a clock on a busy machine does not.

use std::process::Command;

use crate::Outcome;
use crate::node::{Chain, Declared, DynamicChain, OurChain, TapeChain, Undeclared};

/// The chains that are counted.
pub const CHAINS: [(&str, &str); 4] = [
    ("declared", "typed, declared"),
    ("undeclared", "typed, undeclared"),
    ("dynamic", "without types, declared"),
    ("tape", "hand-written tape"),
];

/// The phases of a chain.
pub const PHASES: [&str; 3] = ["forward", "backward", "drop"];

const SHORT: usize = 1_000;
const LONG: usize = 3_000;

/// Runs a chain once; what valgrind looks at.
///
/// # Errors
/// If there is no such chain.
pub fn run(chain: &str, nodes: usize) -> Outcome<()> {
    match chain {
        "declared" => phases(&OurChain::<Declared>::new()?, nodes),
        "undeclared" => phases(&OurChain::<Undeclared>::new()?, nodes),
        "dynamic" => phases(&DynamicChain::new()?, nodes),
        "tape" => phases(&TapeChain::new(), nodes),
        _ => Err(format!("no chain `{chain}`").into()),
    }
}

fn phases(chain: &impl Chain, nodes: usize) -> Outcome<()> {
    let end = forward_phase(chain, nodes)?;
    let rest = backward_phase(chain, end)?;
    drop_phase(rest);
    Ok(())
}

#[inline(never)]
fn forward_phase<C: Chain>(chain: &C, nodes: usize) -> Outcome<C::End> {
    chain.forward(nodes)
}

#[inline(never)]
fn backward_phase<C: Chain>(chain: &C, end: C::End) -> Outcome<C::Rest> {
    chain.backward(end)
}

#[inline(never)]
fn drop_phase<T>(rest: T) {
    drop(std::hint::black_box(rest));
}

/// Instructions per node of one phase.
///
/// # Errors
/// If there is no valgrind, or it does not say what it counted.
pub fn count(chain: &str, phase: &str) -> Outcome<f64> {
    let short = count_chain(chain, phase, SHORT)?;
    let long = count_chain(chain, phase, LONG)?;
    Ok((long - short) / (LONG - SHORT) as f64)
}

fn count_chain(chain: &str, phase: &str, nodes: usize) -> Outcome<f64> {
    let collect = format!("--toggle-collect=*{phase}_phase*");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", &collect])
        .arg(std::env::current_exe()?)
        .args(["--chain", chain, &nodes.to_string()])
        .output()
        .map_err(|error| format!("valgrind is needed, to count instructions: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let line =
        said.lines().find_map(|line| line.split_once("Collected : ")).ok_or_else(|| said.to_string())?;
    Ok(line.1.trim().parse()?)
}
