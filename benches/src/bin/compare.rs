//! gradpact against its peers: one table, on standard output. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]

use std::process::{Command, ExitCode};

use gradpact_benches::options::{HELP, Options};
use gradpact_benches::torch::Torch;
use gradpact_benches::{Outcome, child, groups, table};

/// How many threads everyone has. Rayon reads it, and so does candle.
const THREADS: (&str, &str) = ("RAYON_NUM_THREADS", "2");

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if std::env::var_os(THREADS.0).is_none() {
        // Everything that follows, in a process with as many threads as the others.
        let status =
            Command::new(std::env::current_exe()?).args(&arguments).env(THREADS.0, THREADS.1).status()?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if let Some((child::FLAG, job)) = arguments.split_first().map(|(first, job)| (first.as_str(), job)) {
        println!("{}", child::answer(job)?);
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::parse(arguments)?;
    if options.help {
        println!("{HELP}");
    } else if options.list {
        groups::ALL.iter().for_each(|(name, about, _)| println!("{name:12} {about}"));
    } else {
        compare(&options)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(options: &Options) -> Outcome<()> {
    let wanted: Vec<_> = groups::ALL.iter().filter(|(name, ..)| options.wants(name)).collect();
    if wanted.is_empty() {
        return Err(format!("no group is named so; see --list\n\n{HELP}").into());
    }
    let torch = Torch::start();
    println!("{} · {} rounds · {}\n", machine(), options.rounds, torch.describe());
    println!("{}", table::HEAD);
    for (name, _, make) in wanted {
        for group in make(&torch)? {
            eprintln!("{name}: {}", group.what);
            table::rows(&group.measure(options.rounds)).iter().for_each(|row| println!("{row}"));
        }
    }
    Ok(())
}

/// What it runs on, as far as Linux tells.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let threads = std::env::var(THREADS.0).unwrap_or_default();
    format!("{} · {cores} cores · {threads} threads", model.map_or("unknown processor", |(_, model)| model))
}
