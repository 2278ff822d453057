//! Training with f16 activations: what declaring the gradient's dtype changes, on real data.
//!
//! `cargo run --release --example train_digits`
//!
//! The same network with the same seed is trained four times on handwritten digits: gradients declared f32 or
//! undeclared (and so f16), without loss scaling and with a small loss scale.

#![allow(clippy::print_stdout, reason = "a program that prints its results")]

mod data;
mod network;

use data::Digits;
use gradpact::prelude::*;
use network::{Gradient, Network};

fn accuracy(network: &Network, digits: &Digits) -> Result<f64> {
    let guesses = no_grad(|| network.scores(&digits.images))?.argmax_axis(1, false)?.to_vec()?;
    let labels = digits.labels.to_vec()?;
    let right = guesses.iter().zip(&labels).filter(|(guess, label)| guess == label).count();
    Ok(right as f64 / labels.len() as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (train, test) = data::load()?;
    let depth: usize = std::env::args().nth(1).map_or(4, |a| a.parse().unwrap());
    let rate: f64 = std::env::args().nth(2).map_or(0.5, |a| a.parse().unwrap());
    let epochs: usize = std::env::args().nth(3).map_or(100, |a| a.parse().unwrap());
    let mut widths = vec![64];
    widths.extend(vec![64; depth]);
    widths.push(10);
    for gradient in [Gradient::Declared, Gradient::Undeclared] {
        for scale in [1.0, 64.0] {
            let mut network = Network::new(gradient, &widths, 1)?;
            for epoch in 0..epochs {
                let loss = network.scores(&train.images)?.cross_entropy(&train.labels)?;
                loss.mul_scalar(scale)?.backward()?;
                network.descend(rate, scale)?;
                let share = network.zeros.take_share();
                if (epoch + 1) % (epochs / 5) == 0 {
                    println!(
                        "{gradient:?} {scale} epoch {epoch} loss {:.4} acc {:.4} zeros {share:.4}",
                        loss.item()?,
                        accuracy(&network, &test)?
                    );
                }
            }
        }
    }
    Ok(())
}
