//! One training step of a multi-layer perceptron: three layers with silu, width 256, batch 64.
//!
//! `cargo bench -p gradpact-benches --bench mlp`. Ours in f32 and with f16 storage and f32 gradients; candle in f32.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot go on after an error")]

use divan::Bencher;

const WIDTH: usize = 256;
const BATCH: usize = 64;
const LAYERS: usize = 3;

fn main() {
    divan::main();
}

/// Numbers that need no generator: small, of both signs, not periodic in a row.
fn numbers(count: usize, scale: f32) -> Vec<f32> {
    (0..count).map(|i| (((i * 7919 + 13) % 1000) as f32 / 500.0 - 1.0) * scale).collect()
}

mod ours {
    use gradpact::prelude::*;

    use super::{BATCH, Bencher, LAYERS, WIDTH, numbers};

    /// `x · w`, stored in half precision, gradient in single.
    #[autograd_function(out = f16, grad = f32)]
    struct Linear;

    impl Op for Linear {
        type Inputs = (Tensor<f16, f32>, Tensor<f32>);

        fn forward(&self, ctx: &mut Context, (x, w): (Value<f16>, Value<f32>)) -> Result<Value<f16>> {
            let w = w.cast::<f16>()?;
            ctx.save_for_backward((&x, &w.detach()));
            x.matmul(&w)
        }

        fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<(Value<f32>, Value<f32>)> {
            let (x, w): (Value<f16>, Value<f16>) = ctx.saved()?;
            let dx = grad.matmul(&w.cast::<f32>()?.transpose(0, 1)?)?;
            let dw = x.cast::<f32>()?.transpose(0, 1)?.matmul(&grad)?;
            Ok((dx, dw))
        }
    }

    fn weights() -> Vec<Tensor<f32>> {
        let weight =
            || Tensor::<f32>::from_vec(numbers(WIDTH * WIDTH, 0.1), [WIDTH, WIDTH])?.requiring_grad();
        (0..LAYERS).map(|_| weight().unwrap()).collect()
    }

    fn input() -> Tensor<f32> {
        Tensor::<f32>::from_vec(numbers(BATCH * WIDTH, 1.0), [BATCH, WIDTH]).unwrap()
    }

    #[divan::bench]
    fn f32_step(bencher: Bencher<'_, '_>) {
        let (weights, x) = (weights(), input());
        bencher.bench(|| {
            let step = weights.iter().try_fold(x.clone(), |x, w| x.matmul(w)?.silu()).unwrap();
            step.mean().unwrap().backward().unwrap();
            weights.iter().for_each(Tensor::zero_grad);
        });
    }

    #[divan::bench]
    fn f16_storage_f32_gradient_step(bencher: Bencher<'_, '_>) {
        let (weights, x) = (weights(), input());
        bencher.bench(|| {
            let x: Tensor<f16, f32> = x.cast::<f16>().unwrap().widen_grad::<f32>().unwrap();
            let step = weights.iter().try_fold(x, |x, w| Linear.apply((&x, w))?.silu()).unwrap();
            step.cast::<f32>().unwrap().mean().unwrap().backward().unwrap();
            weights.iter().for_each(Tensor::zero_grad);
        });
    }
}

mod candle {
    use candle_core::{Device, Tensor, Var};

    use super::{BATCH, Bencher, LAYERS, WIDTH, numbers};

    #[divan::bench]
    fn f32_step(bencher: Bencher<'_, '_>) {
        let data = |count, scale, shape: (usize, usize)| {
            Tensor::from_vec(numbers(count, scale), shape, &Device::Cpu).unwrap()
        };
        let weight = || Var::from_tensor(&data(WIDTH * WIDTH, 0.1, (WIDTH, WIDTH))).unwrap();
        let weights: Vec<Var> = (0..LAYERS).map(|_| weight()).collect();
        let x = data(BATCH * WIDTH, 1.0, (BATCH, WIDTH));
        bencher.bench(|| {
            let step = weights.iter().try_fold(x.clone(), |x, w| x.matmul(w)?.silu()).unwrap();
            step.mean_all().unwrap().backward().unwrap()
        });
    }
}
