//! A gradient that vanishes without a word, and how the audit finds where.
//!
//! `cargo run --example explain_lost_gradient`
//!
//! Four layers store their activations in f16. Three of them declare that their gradient arrives in f32; in one the
//! declaration was forgotten. Nothing fails, and the dtypes at both ends are right, yet the layers behind it learn nothing:
//! their gradients are zero. The audit names the place, the picture shows it, and one attribute mends it.

#![allow(clippy::print_stdout, reason = "a program that explains")]

use gradpact::audit::{self, Audit, Happened};
use gradpact::autograd::label;
use gradpact::prelude::*;

/// Writes `Layer`, `tanh(x·w)` stored in f16, with this contract; its backward then receives `$grad`.
macro_rules! layer {
    (#[$contract:meta], received as $grad:ty) => {
        #[$contract]
        pub(super) struct Layer;

        impl Op for Layer {
            type Inputs = (Tensor<f16, f32>, Tensor<f32>);

            fn forward(&self, ctx: &mut Context, (x, w): (Value<f16>, Value<f32>)) -> Result<Value<f16>> {
                let y = x.cast::<f32>()?.matmul(&w)?.tanh()?;
                ctx.save_for_backward((&x, &w));
                y.cast()
            }

            // With z = x·w and g = G·(1 − tanh²z): dx = g·wᵀ, dw = xᵀ·g.
            fn backward(&self, ctx: &Context, grad: $grad) -> Result<(Value<f32>, Value<f32>)> {
                let (x, w): (Value<f16>, Value<f32>) = ctx.saved()?;
                let (x, grad) = (x.cast::<f32>()?, grad.cast::<f32>()?);
                let y = x.matmul(&w)?.tanh()?;
                let g = grad.mul(&y.mul(&y)?.neg()?.add_scalar(1.0)?)?;
                Ok((g.matmul(&w.transpose(0, 1)?)?, x.transpose(0, 1)?.matmul(&g)?))
            }
        }
    };
}

mod declared {
    use super::*;
    layer!(#[autograd_function(out = f16, grad = f32)], received as Value<f32>);
}

/// The same, by a colleague who forgot `grad = f32`.
mod forgotten {
    use super::*;
    layer!(#[autograd_function(out = f16)], received as Value<f16>);
}

const WIDTH: usize = 8;
const LAYERS: usize = 4;
/// The layer in which the declaration was forgotten.
const FORGOTTEN: usize = 2;

/// One backward through all layers. Returns the largest gradient of each layer's weights.
fn train_step(forgotten: Option<usize>) -> Result<Vec<f32>> {
    let mut generator = Generator::new(1);
    let mut weights = Vec::new();
    for _ in 0..LAYERS {
        weights
            .push(Tensor::<f32>::randn([WIDTH, WIDTH], &mut generator)?.mul_scalar(0.5)?.requiring_grad()?);
    }
    let x = Tensor::<f32>::randn([16, WIDTH], &mut generator)?;
    let mut h: Tensor<f16, f32> = x.cast::<f16>()?.widen_grad()?;
    for (number, w) in weights.iter().enumerate() {
        h = label(&format!("layer {}", number + 1), || match forgotten {
            // The type of its output says f16 for the gradient: to go on it must be widened, and looks like the others.
            Some(layer) if layer == number => forgotten::Layer.apply((&h, w))?.widen_grad(),
            _ => declared::Layer.apply((&h, w))?.widen_grad(),
        })?;
    }
    // A mean over many, with a small weight: gradients of 1e-8 and less, as late in a training.
    let loss = label("loss", || h.cast::<f32>()?.mean()?.mul_scalar(1e-6))?;
    loss.backward()?;
    let largest = |w: &Tensor<f32>| match w.grad() {
        Some(grad) => grad.abs()?.max()?.item(),
        None => Ok(0.0),
    };
    weights.iter().map(largest).collect()
}

fn print_gradients(largest: &[f32]) {
    for (number, largest) in largest.iter().enumerate() {
        let comment = if *largest == 0.0 { "  <- learns nothing" } else { "" };
        println!("  layer {}: {largest:.3e}{comment}", number + 1);
    }
}

/// What the audit has to say about narrowing.
fn print_findings(audit: &Audit) {
    for row in audit.rows().filter(|row| row.happened() == Happened::Narrowed) {
        println!("  {} came, {} was delivered: {}", row.arrived, row.contract.grad_dtype, row.receiver);
        println!("  nobody declared that: it is {}", row.contract.source);
        row.census().iter().for_each(|census| println!("  {census}"));
    }
    audit.lossy_round_trips().iter().for_each(|trip| println!("  {trip}"));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("Largest gradient of each layer's weights:");
    let (largest, broken) = audit::record(|| train_step(Some(FORGOTTEN)));
    let largest = largest?;
    print_gradients(&largest);

    println!("\nThe audit of that backward:");
    print_findings(&broken);

    let folder = std::path::Path::new("target");
    std::fs::create_dir_all(folder)?;
    let picture = folder.join("explain_lost_gradient.svg");
    std::fs::write(&picture, broken.picture().to_svg())?;
    std::fs::write(picture.with_extension("dot"), broken.picture().to_dot())?;
    println!("\nThe way of the gradients as a picture: {}", picture.display());

    println!("\nWith `grad = f32` on that layer too:");
    let (mended, fixed) = audit::record(|| train_step(None));
    let mended = mended?;
    print_gradients(&mended);
    fixed.assert_lossless()?;
    println!("  the audit finds no loss");

    println!("\nWhat the attribute changed:\n{}", broken.compare(&fixed));
    check(&largest, &mended);
    Ok(())
}

/// What the program says is so.
fn check(broken: &[f32], mended: &[f32]) {
    let behind = |number: usize| number <= FORGOTTEN;
    for (number, (broken, mended)) in broken.iter().zip(mended).enumerate() {
        assert_eq!(*broken == 0.0, behind(number), "layer {}: {broken}", number + 1);
        assert!(*mended > 0.0, "layer {}", number + 1);
    }
}
