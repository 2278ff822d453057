//! Instructions per node, counted by valgrind: `cargo run --release -p gradpact-benches --bin instructions`.
//!
//! With `--chain NAME NODES` it runs one chain and prints nothing: for a profile by hand,
//! `valgrind --tool=callgrind --toggle-collect='*forward_phase*' target/release/instructions --chain declared 1000`.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use gradpact_benches::Outcome;
use gradpact_benches::instructions::{CHAINS, PHASES, count, run};

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--chain", chain, nodes] => run(chain, nodes.parse()?),
        [] => table(),
        _ => Err("no arguments, or --chain NAME NODES".into()),
    }
}

fn table() -> Outcome<()> {
    println!("| instructions per node | {} | together |", PHASES.join(" | "));
    println!("| --- | ---: | ---: | ---: | ---: |");
    for (chain, what) in CHAINS {
        let counts = PHASES.iter().map(|phase| count(chain, phase)).collect::<Outcome<Vec<_>>>()?;
        let sum: f64 = counts.iter().sum();
        let cells: Vec<String> = counts.iter().chain([&sum]).map(|count| format!("{count:.0}")).collect();
        println!("| {what} | {} |", cells.join(" | "));
    }
    Ok(())
}
