//! A loss so small that f16 cannot hold its gradient: what arrives with a declared gradient dtype, and without.
//!
//! `cargo run -p gradpact-torch --example silu`
#![allow(clippy::print_stdout, reason = "a program that prints")]

use gradpact_torch::prelude::*;
use tch::Kind;

/// `x · σ(x)`, stored in half precision; its backward receives single precision.
#[autograd_function(out = f16, grad = f32)]
struct Silu;

/// The same without a word about the gradient, which then has the dtype of the output.
#[autograd_function(out = f16)]
struct Undeclared;

impl Op<Torch> for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        Value::from_tch(x.silu().to_kind(Kind::Half))
    }

    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        println!("  backward of Silu receives {grad_dtype:?}", grad_dtype = grad.kind());
        slope(ctx, &grad)
    }
}

/// grad · σ(x) · (1 + x·(1 − σ(x)))
fn slope(ctx: &Context, grad: &tch::Tensor) -> Result<Value<f32>> {
    let x: Value<f32> = ctx.saved()?;
    let s = x.sigmoid();
    Value::from_tch(grad * &s * (1.0 + &*x * (1.0 - &s)))
}

impl Op<Torch> for Undeclared {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        Op::forward(&Silu, ctx, x)
    }

    fn backward(&self, ctx: &Context, grad: Value<f16>) -> Result<Value<f32>> {
        println!("  backward of Undeclared receives {grad_dtype:?}", grad_dtype = grad.kind());
        slope(ctx, &grad)
    }
}

fn main() -> Result<()> {
    let (major, minor, patch) = gradpact_torch::libtorch_version();
    println!("libtorch {major}.{minor}.{patch}");
    let leaf = || Tensor::<f32>::from_tch(tch::Tensor::from_slice(&[-1.0_f32, 0.5, 2.0]))?.requiring_grad();

    let x = leaf()?;
    let y: Tensor<f16, f32> = Silu.apply(&x)?;
    println!("declared grad = f32: node {}", gradpact_torch::grad_fn_name(&y)?.unwrap_or_default());
    (y.cast::<f32>()?.sum(Kind::Float) * 1e-10).backward();
    print_grad(x.grad());

    let x = leaf()?;
    let y: Tensor<f16> = Undeclared.apply(&x)?;
    println!("undeclared: node {}", gradpact_torch::grad_fn_name(&y)?.unwrap_or_default());
    (y.to_kind(Kind::Float).sum(Kind::Float) * 1e-10).backward();
    print_grad(x.grad());
    Ok(())
}

fn print_grad(grad: Option<Value<f32>>) {
    let values: Vec<f32> = grad.and_then(|grad| Vec::try_from(&*grad).ok()).unwrap_or_default();
    println!("  gradient of x: {values:?}");
}
