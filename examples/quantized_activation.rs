//! An activation stored in 8 bits, with a straight-through gradient in f32.
//!
//! `cargo run --example quantized_activation`
//!
//! Rounding to integers has no useful derivative, and an `i8` tensor has, elsewhere, no gradient at all. Here the Function
//! declares one: `out = i8, grad = f32`. Backward receives it in f32 and passes it on where the value was in range.

#![allow(clippy::print_stdout, reason = "a program that prints its results")]

use gradpact::prelude::*;
use gradpact::testing::Gradcheck;

/// `round(x / step)` as an `i8`, saturating.
#[autograd_function(out = i8, grad = f32)]
struct Quantize {
    step: f64,
}

impl Quantize {
    /// The largest quantized magnitude.
    const LIMIT: f64 = 127.0;
}

impl Op for Quantize {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<i8>> {
        ctx.save_for_backward(&x);
        let quantize =
            |&x: &f32| (f64::from(x) / self.step).round_ties_even().clamp(-Self::LIMIT, Self::LIMIT) as i8;
        Value::from_vec(x.to_vec()?.iter().map(quantize).collect(), x.shape())
    }

    /// `G / step` where `x` was in range, else zero.
    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        let limit = Value::full(x.shape(), Self::LIMIT * self.step)?;
        let in_range = x.abs()?.le(&limit)?.cast::<f32>()?;
        grad.mul(&in_range)?.mul_scalar(1.0 / self.step)
    }
}

/// The values that the integers stand for.
fn dequantize(q: &Tensor<i8, f32>, step: f64) -> Result<Tensor<f32>> {
    q.cast::<f32>()?.mul_scalar(step)
}

fn main() -> Result<()> {
    let step = 0.05;
    let x = Tensor::<f32>::from_vec(vec![-0.26, 0.0, 0.52, 3.16, 100.0], [5])?.requiring_grad()?;
    let q = Quantize { step }.apply(&x)?;
    println!("{q}\n");
    let y = dequantize(&q, step)?;
    let loss = y.mul(&y)?.sum()?;
    loss.backward()?;

    let grad = x.grad().ok_or_else(|| Error::custom("no gradient came"))?.to_vec()?;
    println!("        x     i8  dequantized  gradient of Σ y²");
    for (((x, q), y), grad) in x.to_vec()?.iter().zip(q.to_vec()?).zip(y.to_vec()?).zip(&grad) {
        println!("{x:>9.4}  {q:>5}  {y:>11.4}  {grad:>9.4}");
    }
    assert_eq!(q.to_vec()?, [-5, 0, 10, 63, 127]);
    assert_eq!(q.grad_dtype(), Some(GradDType::Exactly(DType::F32)));
    // Straight through: the derivative of y² at the dequantized value, and none where the value was cut off.
    for (grad, expected) in grad.iter().zip([-0.5, 0.0, 1.0, 6.3, 0.0_f32]) {
        assert!((grad - expected).abs() < 1e-5, "expected {expected}, got {grad}");
    }
    // The integers have no slope; what they stand for has one.
    let unrounded = |x: &[&DynTensor]| x[0].mul_scalar(1.0 / step)?.clamp(-Quantize::LIMIT, Quantize::LIMIT);
    println!("\n{}", Gradcheck::new().against(unrounded).check(Quantize { step }, &x)?);
    println!("\nthe gradient of an i8 tensor arrived in f32 and went straight through");
    Ok(())
}
