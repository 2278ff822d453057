//! A spiking neuron: a step forward, a smooth surrogate backward.
//!
//! `cargo run --example spiking_neuron`
//!
//! A neuron fires (1) or not (0). The derivative of that step is zero wherever it exists, so nothing could be learned
//! through it; training uses the derivative of an arctangent in its place (Fang et al., "Incorporating Learnable
//! Membrane Time Constant", 2021). The spikes are stored in f16, where 0 and 1 are exact; their gradient comes in f32.

#![allow(clippy::print_stdout, reason = "a program that prints its results")]

use std::f64::consts::PI;

use gradpact::optim::{Optimizer, Sgd};
use gradpact::prelude::*;
use gradpact::testing::Gradcheck;

/// `x > 0`, with the surrogate gradient `G / (1 + (π·x)²)`.
#[autograd_function(out = f16, grad = f32)]
struct Spike;

impl Op for Spike {
    type Inputs = Tensor<f16, f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f16>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.gt(&Value::zeros(x.shape())?)?.cast()
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f16> = ctx.saved()?;
        let scaled = x.cast::<f32>()?.mul_scalar(PI)?;
        grad.div(&scaled.mul(&scaled)?.add_scalar(1.0)?)
    }
}

/// The gradient of one, sent back through three neurons.
fn surrogate_gradients() -> Result<()> {
    let x =
        Tensor::<f16, f32>::from_vec([-1.0, 0.0, 0.5].map(f16::from_f32).to_vec(), [3])?.requiring_grad()?;
    let spikes = Spike.apply(&x)?;
    spikes.sum()?.backward()?;
    let grad = x.grad().ok_or_else(|| Error::custom("no gradient came"))?.to_vec()?;
    println!("potential  spike  surrogate gradient");
    for ((x, spike), grad) in x.to_vec()?.iter().zip(spikes.to_vec()?).zip(&grad) {
        println!("{x:>9}  {spike:>5}  {grad:.7}");
    }
    assert_eq!(spikes.to_vec()?, [0.0, 0.0, 1.0].map(f16::from_f32));
    for (got, expected) in grad.iter().zip([0.091_999_7, 1.0, 0.288_400_4_f32]) {
        assert!((got - expected).abs() < 1e-6, "expected {expected}, got {got}");
    }
    Ok(())
}

/// Compares the surrogate gradient with the slope of the arctangent that it is taken from: of a step there is none.
fn check_surrogate() -> Result<()> {
    let arctangent = |x: &[&DynTensor]| -> Result<DynTensor> {
        let angles = x[0].to_f64_vec()?.iter().map(|x| (PI * x).atan() / PI).collect();
        DynTensor::from_vec::<f64>(angles, x[0].shape())
    };
    let x = Tensor::<f16, f32>::from_vec([-1.0, 0.25, 0.5].map(f16::from_f32).to_vec(), [3])?;
    println!("\n{}", Gradcheck::new().against(arctangent).check(Spike, &x)?);
    Ok(())
}

/// How often a leaky integrate-and-fire neuron fires in `steps` steps of constant input `w`.
fn firings(w: &Tensor<f32>, steps: usize) -> Result<Tensor<f32>> {
    let (mut potential, mut count) = (Tensor::<f32>::zeros([1])?, Tensor::<f32>::zeros([1])?);
    for _ in 0..steps {
        potential = potential.mul_scalar(0.8)?.add(w)?;
        let spike = Spike.apply(&potential.add_scalar(-1.0)?.cast()?)?.cast::<f32>()?;
        // Where it fired, the potential is reset.
        potential = potential.sub(&potential.mul(&spike)?)?;
        count = count.add(&spike)?;
    }
    Ok(count)
}

/// Learns the input at which a neuron fires ten times in twenty steps: possible only through the surrogate.
fn learn_a_firing_rate() -> Result<()> {
    let (steps, target) = (20, 10.0);
    let mut w = Tensor::<f32>::from_vec(vec![0.1], [1])?.requiring_grad()?;
    let mut optimizer = Optimizer::new(Sgd::new(1e-4))?;
    let before = firings(&w, steps)?.item()?;
    for _ in 0..200 {
        let miss = firings(&w, steps)?.add_scalar(-target)?;
        miss.mul(&miss)?.sum()?.backward()?;
        optimizer.step(&mut [&mut w])?;
    }
    let after = firings(&w, steps)?.item()?;
    println!("\nfirings in {steps} steps: {before} before, {after} after learning an input of {}", w.item()?);
    assert_eq!((before, f64::from(after)), (0.0, target));
    Ok(())
}

fn main() -> Result<()> {
    surrogate_gradients()?;
    check_surrogate()?;
    learn_a_firing_rate()
}
