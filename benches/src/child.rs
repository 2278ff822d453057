//! Contenders in a process of their own: for memory, which must begin clean, and for what may not survive.
//!
//! `compare` starts itself with `--child` and a job; the child prints one line of JSON. Memory is read from Linux's
//! `/proc/self`; elsewhere it is not measured.

use std::process::Command;

use crate::measure::{Column, Contender};
use crate::{Outcome, graph, mlp};

/// The first argument of a child.
pub const FLAG: &str = "--child";

/// A contender that does `job` in a new process each turn.
pub fn contender(column: Column, job: &[&str]) -> Contender {
    let job: Vec<String> = job.iter().map(|&word| word.to_owned()).collect();
    Contender::new(column, move || ask(&job))
}

fn ask(job: &[String]) -> Outcome<Vec<f64>> {
    let output = Command::new(std::env::current_exe()?).arg(FLAG).args(job).output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let overflow = errors.contains("overflowed its stack");
        return Err(if overflow { "stack overflow".into() } else { format!("{}", output.status).into() });
    }
    // What is not measured is no number in JSON.
    let values: Vec<Option<f64>> = serde_json::from_slice(&output.stdout)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

/// What a child answers to its arguments, which follow [`FLAG`].
///
/// # Errors
/// If the job is unknown, or fails.
pub fn answer(job: &[String]) -> Outcome<String> {
    let words: Vec<&str> = job.iter().map(String::as_str).collect();
    let values = match words[..] {
        ["graph-time", library, nodes] => graph::time(library, nodes.parse()?)?,
        ["graph-memory", library, nodes] => graph::memory(library, nodes.parse()?)?,
        ["mlp-memory", dtype, width, batch] => mlp::memory(dtype, width.parse()?, batch.parse()?)?,
        _ => return Err(format!("unknown job {words:?}").into()),
    };
    Ok(serde_json::to_string(&values)?)
}

/// How many bytes of memory the process holds.
///
/// # Errors
/// Where there is no `/proc`.
pub fn resident() -> Outcome<f64> {
    field("VmRSS:")
}

/// How many bytes it has held at most, since [`forget_peak`].
///
/// # Errors
/// Where there is no `/proc`.
pub fn peak() -> Outcome<f64> {
    field("VmHWM:")
}

/// Lets [`peak`] begin anew.
///
/// # Errors
/// Where there is no `/proc`.
pub fn forget_peak() -> Outcome<()> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

fn field(name: &str) -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such field")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}
