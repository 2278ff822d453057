//! Functions as a user would write them, generic over the engine.
//!
//! They are in a macro so that the very same text can be compiled for one engine too, with that engine's own methods.

use gradpact::ops::{DynTensorOps as _, MaskOps as _, ValueOps as _};
use gradpact::{Ops, prelude::*};

/// Writes the Functions for an engine, and `outcomes`, which runs them all: `functions!([E: Ops] E)` for every engine.
#[macro_export]
macro_rules! functions {
    ([$($generics:tt)*] $engine:ty) => {
        /// `x · σ(x)`.
        #[autograd_function(out = f16, grad = f32)]
        struct Silu;

        impl<$($generics)*> Op<$engine> for Silu {
            type Inputs = Tensor<f32, f32, $engine>;

            fn forward(&self, ctx: &mut Context<$engine>, x: Value<f32, $engine>) -> Result<Value<f16, $engine>> {
                ctx.save_for_backward(&x);
                x.mul(&x.sigmoid()?)?.cast()
            }

            // grad · σ(x) · (1 + x·(1 − σ(x)))
            fn backward(
                &self,
                ctx: &Context<$engine>,
                grad: Value<f32, $engine>,
            ) -> Result<Value<f32, $engine>> {
                let x: Value<f32, $engine> = ctx.saved()?;
                let s = x.sigmoid()?;
                let slope = x.mul(&s.neg()?.add_scalar(1.0)?)?.add_scalar(1.0)?.mul(&s)?;
                grad.mul(&slope)
            }
        }

        /// `½x²` up to `|x| = 1`, from there on `|x| − ½`. Its gradient is rounded to half precision.
        #[autograd_function(out = f32, grad = f16)]
        struct Huber;

        impl<$($generics)*> Op<$engine> for Huber {
            type Inputs = Tensor<f32, f32, $engine>;

            fn forward(&self, ctx: &mut Context<$engine>, x: Value<f32, $engine>) -> Result<Value<f32, $engine>> {
                ctx.save_for_backward(&x);
                let (size, square) = (x.abs()?, x.mul(&x)?.mul_scalar(0.5)?);
                let one = size.mul_scalar(0.0)?.add_scalar(1.0)?;
                size.le(&one)?.where_cond(&square, &size.sub_scalar(0.5)?)
            }

            fn backward(
                &self,
                ctx: &Context<$engine>,
                grad: Value<f16, $engine>,
            ) -> Result<Value<f32, $engine>> {
                let x: Value<f32, $engine> = ctx.saved()?;
                grad.cast::<f32>()?.mul(&x.clamp(-1.0, 1.0)?)
            }
        }

        /// `w · x / √(mean(x²) + ε)`, for each row of `x`.
        #[autograd_function(out = bf16, grad = f32)]
        struct RmsNorm {
            epsilon: f64,
        }

        impl<$($generics)*> Op<$engine> for RmsNorm {
            type Inputs = (Tensor<f32, f32, $engine>, Tensor<f32, f32, $engine>);

            fn forward(
                &self,
                ctx: &mut Context<$engine>,
                (x, w): (Value<f32, $engine>, Value<f32, $engine>),
            ) -> Result<Value<bf16, $engine>> {
                let factor = x.mul(&x)?.mean_axes(&[-1], true)?.add_scalar(self.epsilon)?.rsqrt()?;
                ctx.save_for_backward((&x, &w));
                x.mul(&factor)?.mul(&w)?.cast()
            }

            // With n = x·r: dw = Σ G·n, dx = r·(G·w − n·mean(G·w·n)).
            fn backward(
                &self,
                ctx: &Context<$engine>,
                grad: Value<f32, $engine>,
            ) -> Result<(Value<f32, $engine>, Value<f32, $engine>)> {
                let (x, w): (Value<f32, $engine>, Value<f32, $engine>) = ctx.saved()?;
                let factor = x.mul(&x)?.mean_axes(&[-1], true)?.add_scalar(self.epsilon)?.rsqrt()?;
                let (normal, weighted) = (x.mul(&factor)?, grad.mul(&w)?);
                let along = normal.mul(&weighted.mul(&normal)?.mean_axes(&[-1], true)?)?;
                let dx = weighted.sub(&along)?.mul(&factor)?;
                Ok((dx, grad.mul(&normal)?.sum_to_shape(w.shape())?))
            }
        }

        /// `x · wᵀ`, all stored in half precision, all gradients in single.
        #[autograd_function(out = f16, grad = f32)]
        struct Linear;

        impl<$($generics)*> Op<$engine> for Linear {
            type Inputs = (Tensor<f16, f32, $engine>, Tensor<f16, f32, $engine>);

            fn forward(
                &self,
                ctx: &mut Context<$engine>,
                (x, w): (Value<f16, $engine>, Value<f16, $engine>),
            ) -> Result<Value<f16, $engine>> {
                ctx.save_for_backward((&x, &w));
                x.matmul(&w.transpose(0, 1)?)
            }

            fn backward(
                &self,
                ctx: &Context<$engine>,
                grad: Value<f32, $engine>,
            ) -> Result<(Value<f32, $engine>, Value<f32, $engine>)> {
                let (x, w): (Value<f16, $engine>, Value<f16, $engine>) = ctx.saved()?;
                Ok((grad.matmul(&w.cast()?)?, grad.transpose(0, 1)?.matmul(&x.cast()?)?))
            }
        }

        /// The mean over rows of `−Σ t · ln softmax(x)`, whose gradient is taken as it comes.
        #[autograd_function(out = f32, grad = any)]
        struct CrossEntropy;

        impl<$($generics)*> Op<$engine> for CrossEntropy {
            type Inputs = (Tensor<f32, f32, $engine>, Tensor<f32, NoGrad, $engine>);

            fn forward(
                &self,
                ctx: &mut Context<$engine>,
                (x, target): (Value<f32, $engine>, Value<f32, $engine>),
            ) -> Result<Value<f32, $engine>> {
                ctx.save_for_backward((&x, &target));
                x.log_softmax(-1)?.mul(&target)?.sum_axes(&[-1], false)?.mean()?.neg()
            }

            fn backward(
                &self,
                ctx: &Context<$engine>,
                grad: DynTensor<$engine>,
            ) -> Result<(Value<f32, $engine>, ())> {
                let (x, target): (Value<f32, $engine>, Value<f32, $engine>) = ctx.saved()?;
                let distance = x.softmax(-1)?.sub(&target)?.div_scalar(x.shape()[0] as f64)?;
                Ok((grad.mul(distance.as_dyn())?.typed()?, ()))
            }
        }

        /// What comes of each Function.
        ///
        /// # Errors
        /// What the engine and the Functions report.
        pub fn outcomes<$($generics)*>(
            access: &$crate::generic::Access<$engine>,
        ) -> Result<Vec<(&'static str, $crate::generic::Outcome)>> {
            use $crate::generic::{leaf, outcome};

            let (dtype, grads) = (DType::F32, |x: &Tensor<f32, f32, $engine>| x.grad().map(Tensor::into_dyn));
            let x = || leaf::<f32, f32, _>(access, &[2, 3], &[0.5, -1.5, 0.75, 2.25, -0.5, 0.0]);
            let half = |values: &[f64]| leaf::<f16, f32, _>(access, &[2, 3], values);
            let mut all = Vec::new();

            let input = x()?;
            let y: Tensor<f16, f32, $engine> = Silu.apply(&input)?;
            all.push(("Silu", outcome(access, y.as_dyn(), dtype, || vec![grads(&input)])?));

            let input = x()?;
            let y: Tensor<f32, f16, $engine> = Huber.apply(&input)?;
            all.push(("Huber", outcome(access, y.as_dyn(), dtype, || vec![grads(&input)])?));

            let (input, weight) = (x()?, leaf::<f32, f32, _>(access, &[3], &[1.0, 0.5, -0.75])?);
            let y: Tensor<bf16, f32, $engine> = RmsNorm { epsilon: 1e-5 }.apply((&input, &weight))?;
            let both = || vec![grads(&input), grads(&weight)];
            all.push(("RmsNorm", outcome(access, y.as_dyn(), dtype, both)?));

            let input = half(&[0.5, -1.5, 0.75, 2.25, -0.5, 0.0])?;
            let weight = half(&[1.0, 0.5, -0.75, 0.25, 1.5, -1.0])?;
            let y: Tensor<f16, f32, $engine> = Linear.apply((&input, &weight))?;
            let both = || vec![input.grad().map(Tensor::into_dyn), weight.grad().map(Tensor::into_dyn)];
            all.push(("Linear", outcome(access, y.as_dyn(), dtype, both)?));

            let target = (access.make)(DType::F32, &[2, 3], &[0.0, 1.0, 0.0, 0.25, 0.25, 0.5])?.typed()?;
            for (name, seed) in [("CrossEntropy", dtype), ("CrossEntropy, seed in f16", DType::F16)] {
                let input = x()?;
                let y: Tensor<f32, AnyGrad, $engine> = CrossEntropy.apply((&input, &target))?;
                all.push((name, outcome(access, y.as_dyn(), seed, || vec![grads(&input)])?));
            }
            Ok(all)
        }
    };
}
functions!([E: Ops] E);
