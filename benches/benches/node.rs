//! What a node costs: a chain of 1,000 custom Functions on one element, forward, backward and drop.
//!
//! `cargo bench -p gradpact-benches --bench node`. Time is for the whole chain; divide by 1,000 for a node.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot go on after an error")]

use divan::Bencher;

const NODES: usize = 1_000;

fn main() {
    divan::main();
}

mod ours {
    use gradpact::prelude::*;

    use super::{Bencher, NODES};

    /// `-x`, with the gradient dtype declared.
    #[autograd_function(out = f32, grad = f32)]
    struct Declared;

    /// `-x`, without a declaration.
    #[autograd_function(out = f32)]
    struct Undeclared;

    macro_rules! negates {
        ($($function:ident)*) => {$(
            impl Op for $function {
                type Inputs = Tensor<f32>;

                fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
                    ctx.save_for_backward(&x);
                    Ok(x)
                }

                fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
                    let _x: Value<f32> = ctx.saved()?;
                    Ok(grad)
                }
            }
        )*};
    }
    negates!(Declared Undeclared);

    fn leaf() -> Tensor<f32> {
        Tensor::<f32>::from_vec(vec![1.5], [1]).unwrap().requiring_grad().unwrap()
    }

    fn chain(x: &Tensor<f32>, step: impl Fn(&Tensor<f32>) -> Tensor<f32>) -> Tensor<f32> {
        (0..NODES).fold(x.clone(), |y, _| step(&y))
    }

    #[divan::bench]
    fn declared_forward(bencher: Bencher<'_, '_>) {
        let x = leaf();
        bencher.bench(|| chain(&x, |y| Declared.apply(y).unwrap()));
    }

    #[divan::bench]
    fn declared_backward(bencher: Bencher<'_, '_>) {
        let x = leaf();
        bencher.with_inputs(|| chain(&x, |y| Declared.apply(y).unwrap())).bench_values(|y| {
            y.backward().unwrap();
            y
        });
    }

    #[divan::bench]
    fn declared_drop(bencher: Bencher<'_, '_>) {
        let x = leaf();
        bencher.with_inputs(|| chain(&x, |y| Declared.apply(y).unwrap())).bench_values(drop);
    }

    #[divan::bench]
    fn undeclared_forward(bencher: Bencher<'_, '_>) {
        let x = leaf();
        bencher.bench(|| chain(&x, |y| Undeclared.apply(y).unwrap()));
    }

    #[divan::bench]
    fn undeclared_backward(bencher: Bencher<'_, '_>) {
        let x = leaf();
        bencher.with_inputs(|| chain(&x, |y| Undeclared.apply(y).unwrap())).bench_values(|y| {
            y.backward().unwrap();
            y
        });
    }
}

mod candle {
    use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor, Var};

    use super::{Bencher, NODES};

    /// The identity as a custom operation: as little of its own as the one above.
    struct Identity;

    impl CustomOp1 for Identity {
        fn name(&self) -> &'static str {
            "identity"
        }

        fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
            Ok((storage.clone(), layout.shape().clone()))
        }

        fn bwd(&self, _: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
            Ok(Some(grad.clone()))
        }
    }

    fn leaf() -> Var {
        Var::new(&[1.5_f32], &Device::Cpu).unwrap()
    }

    fn chain(x: &Var) -> Tensor {
        (0..NODES).fold(x.as_tensor().clone(), |y, _| y.apply_op1(Identity).unwrap())
    }

    #[divan::bench]
    fn forward(bencher: Bencher<'_, '_>) {
        let x = leaf();
        bencher.bench(|| chain(&x));
    }

    #[divan::bench]
    fn backward(bencher: Bencher<'_, '_>) {
        let x = leaf();
        bencher.with_inputs(|| chain(&x)).bench_values(|y| {
            let grads = y.backward().unwrap();
            (y, grads)
        });
    }
}
