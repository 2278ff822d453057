//! What a node costs: a chain of negations of one element, forward, backward and drop, against a Function written in C++.
//!
//! `cargo bench -p gradpact-torch --features baseline`. Nanoseconds for each node, the median of rounds that take turns.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a program that prints and stops"
)]

use std::time::Instant;

use gradpact_torch::prelude::*;
use tch::Kind;

const LENGTH: usize = 1000;
const ROUNDS: usize = 60;

/// `−x`, with the attribute.
#[autograd_function(out = f32)]
struct Neg;

impl Op<Torch> for Neg {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        Value::from_tch(x.neg())
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Value::from_tch(grad.neg())
    }
}

fn ours(x: &tch::Tensor) -> tch::Tensor {
    let mut y = Tensor::<f32>::from_tch(x.shallow_clone()).unwrap();
    for _ in 0..LENGTH {
        y = Neg.apply(&y).unwrap();
    }
    y.into_tch()
}

fn cpp(x: &tch::Tensor) -> tch::Tensor {
    gradpact_torch::cpp_neg_chain(x, LENGTH).unwrap()
}

fn builtin(x: &tch::Tensor) -> tch::Tensor {
    (0..LENGTH).fold(x.shallow_clone(), |y, _| y.neg())
}

/// Forward, backward and drop, in nanoseconds a node.
fn round(chain: fn(&tch::Tensor) -> tch::Tensor) -> [f64; 3] {
    let x = tch::Tensor::ones([1], (Kind::Float, tch::Device::Cpu)).set_requires_grad(true);
    let start = Instant::now();
    let y = chain(&x);
    let forward = start.elapsed();
    let start = Instant::now();
    gradpact_torch::backward(&[(&y, None)], BackwardOptions::new().retain_graph()).unwrap();
    let backward = start.elapsed();
    let start = Instant::now();
    drop(y);
    [forward, backward, start.elapsed()].map(|time| time.as_nanos() as f64 / LENGTH as f64)
}

fn median(rounds: &[[f64; 3]], phase: usize) -> f64 {
    let mut times: Vec<f64> = rounds.iter().map(|round| round[phase]).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    tch::set_num_threads(1);
    type Chain = fn(&tch::Tensor) -> tch::Tensor;
    let subjects: [(&str, Chain); 3] = [("built-in neg", builtin), ("C++ Function", cpp), ("gradpact", ours)];
    let mut measured: [Vec<[f64; 3]>; 3] = Default::default();
    for turn in 0..ROUNDS + 5 {
        for ((_, chain), rounds) in subjects.iter().zip(&mut measured) {
            let times = round(*chain);
            if turn >= 5 {
                rounds.push(times);
            }
        }
    }
    let (major, minor, patch) = gradpact_torch::libtorch_version();
    println!("libtorch {major}.{minor}.{patch}, {LENGTH} nodes, median of {ROUNDS}, ns a node");
    println!("{:<14} {:>8} {:>9} {:>6} {:>8}", "", "forward", "backward", "drop", "sum");
    let mut sums = Vec::new();
    for ((name, _), rounds) in subjects.iter().zip(&measured) {
        let [forward, backward, drop] = [0, 1, 2].map(|phase| median(rounds, phase));
        sums.push(forward + backward + drop);
        println!("{name:<14} {forward:>8.0} {backward:>9.0} {drop:>6.0} {:>8.0}", forward + backward + drop);
    }
    println!("gradpact / C++ Function: {:.2}", sums[2] / sums[1]);
}
