//! Training with f16 activations: what declaring the gradient's dtype changes, on real data.
//!
//! `cargo run --release --example train_digits [-- --epochs 400] [--audit]`
//!
//! The same network with the same seed is trained four times on handwritten digits: gradients declared f32, or undeclared
//! and therefore f16; each without loss scaling and with a small loss scale. It prints accuracy and the share of gradient
//! values that arrived as zero, and draws both over the epochs. With `--audit` it also tells where the last gradients were lost.

#![allow(clippy::print_stdout, reason = "a program that prints its results")]

mod chart;
mod data;
mod network;

use std::path::PathBuf;

use clap::Parser;
use data::Digits;
use gradpact::audit::{self, Audit};
use gradpact::optim::{Optimizer, Sgd};
use gradpact::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use network::{Gradient, Network};

/// Trains a perceptron with f16 activations, with and without f32 gradients.
#[derive(Debug, Parser)]
struct Arguments {
    /// How often each network sees all training images.
    #[arg(long, default_value_t = 400)]
    epochs: usize,
    /// Step size of gradient descent.
    #[arg(long, default_value_t = 0.3)]
    rate: f64,
    /// Hidden layers of 64 units.
    #[arg(long, default_value_t = 4)]
    hidden: usize,
    /// The small loss scale.
    #[arg(long, default_value_t = 64.0)]
    loss_scale: f64,
    /// Tells where gradients of the last epoch were lost.
    #[arg(long)]
    audit: bool,
    /// Seed of the initial weights.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What one epoch gave.
#[derive(Debug)]
pub(crate) struct Epoch {
    loss: f32,
    accuracy: f64,
    zeros: f64,
}

/// One training run.
#[derive(Debug)]
pub(crate) struct Run {
    gradient: Gradient,
    loss_scale: f64,
    epochs: Vec<Epoch>,
    /// Of the last backward, if asked for.
    audit: Option<Audit>,
}

impl Run {
    fn name(&self) -> String {
        let gradient = match self.gradient {
            Gradient::Declared => "grad = f32",
            Gradient::Undeclared => "undeclared",
        };
        format!("{gradient}, loss × {}", self.loss_scale)
    }
}

fn accuracy(network: &Network, digits: &Digits) -> Result<f64> {
    let guesses = no_grad(|| network.scores(&digits.images))?.argmax(1, false)?.to_vec()?;
    let labels = digits.labels.to_vec()?;
    let right = guesses.iter().zip(&labels).filter(|(guess, label)| guess == label).count();
    Ok(right as f64 / labels.len() as f64)
}

fn train(
    arguments: &Arguments,
    gradient: Gradient,
    loss_scale: f64,
    (train, test): &(Digits, Digits),
    bar: &ProgressBar,
) -> Result<Run> {
    let widths: Vec<usize> = std::iter::repeat_n(64, arguments.hidden + 1).chain([10]).collect();
    let mut network = Network::new(gradient, &widths, arguments.seed)?;
    // A step of plain gradient descent is linear in the gradient: dividing its size undoes the loss scale.
    let mut optimizer = Optimizer::new(Sgd::new(arguments.rate / loss_scale))?;
    let mut run = Run { gradient, loss_scale, epochs: Vec::new(), audit: None };
    bar.set_message(run.name());
    for epoch in 1..=arguments.epochs {
        let loss = network.scores(&train.images)?.cross_entropy(&train.labels)?;
        let scaled = loss.mul_scalar(loss_scale)?;
        if arguments.audit && epoch == arguments.epochs {
            let (result, audit) = audit::record(|| scaled.backward());
            result?;
            run.audit = Some(audit);
        } else {
            scaled.backward()?;
        }
        optimizer.step(&mut network.parameters())?;
        let (accuracy, zeros) = (accuracy(&network, test)?, network.zeros.take_share());
        run.epochs.push(Epoch { loss: loss.item()?, accuracy, zeros });
        bar.inc(1);
    }
    Ok(run)
}

/// Where cargo puts what it makes: the chart goes there too.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

fn print_table(runs: &[Run]) {
    println!("{:<22}  final loss  test accuracy  gradient values that arrived as zero", "");
    println!("{:<22}  {:>10}  {:>13}  {:>12} {:>12}", "", "", "", "last epoch", "worst epoch");
    for run in runs {
        let Some(last) = run.epochs.last() else { continue };
        let worst = run.epochs.iter().map(|epoch| epoch.zeros).fold(0.0, f64::max);
        let (zeros, worst) = (last.zeros * 100.0, worst * 100.0);
        let accuracy = last.accuracy * 100.0;
        println!("{:<22}  {:>10.5}  {accuracy:>12.2}%  {zeros:>11.3}% {worst:>11.3}%", run.name(), last.loss);
    }
}

/// Where the gradients of the last epoch were lost, as the audits tell.
fn print_audits(runs: &[Run]) {
    for (run, audit) in runs.iter().filter_map(|run| Some((run, run.audit.as_ref()?))) {
        println!("\n{}: {}", run.name(), audit.summary());
        audit.lossy_round_trips().iter().for_each(|trip| println!("  {trip}"));
    }
}

/// What the table shows: a declared f32 gradient loses nothing, an undeclared one loses more and more.
fn check(runs: &[Run]) {
    let last_zeros = |gradient| {
        let unscaled = runs.iter().find(|run| run.gradient == gradient && run.loss_scale == 1.0);
        unscaled.and_then(|run| run.epochs.last()).map_or(f64::NAN, |epoch| epoch.zeros)
    };
    assert_eq!(last_zeros(Gradient::Declared), 0.0, "no gradient value is lost when f32 is declared");
    assert!(last_zeros(Gradient::Undeclared) > 0.0, "some are lost when it is not");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    network::check_layers()?;
    let digits = data::load()?;
    let style = ProgressStyle::with_template("{msg:<24} {wide_bar} {pos}/{len}  {eta} left")?;
    let bar = ProgressBar::new(4 * arguments.epochs as u64).with_style(style);
    let mut runs = Vec::new();
    for gradient in [Gradient::Declared, Gradient::Undeclared] {
        for loss_scale in [1.0, arguments.loss_scale] {
            runs.push(train(&arguments, gradient, loss_scale, &digits, &bar)?);
        }
    }
    bar.finish_and_clear();
    print_table(&runs);
    print_audits(&runs);

    let folder = target_folder();
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("train_digits.svg");
    chart::write(&runs, &path)?;
    println!("\nchart: {}", path.display());
    check(&runs);
    Ok(())
}
