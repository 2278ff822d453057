//! A multi-layer perceptron whose layers store their outputs in f16, once with the gradient declared f32, once not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gradpact::optim::Parameter;
use gradpact::prelude::*;
use gradpact::testing::gradcheck;

/// How many values the gradients that layers received had, and how many of these were exactly zero.
#[derive(Debug, Default)]
pub(crate) struct Zeros {
    zeros: AtomicU64,
    values: AtomicU64,
}

impl Zeros {
    fn count<T: Element>(&self, grad: &Value<T>) -> Result<()> {
        let values = grad.to_vec()?;
        let zeros = values.iter().filter(|value| value.to_f64() == 0.0).count();
        self.zeros.fetch_add(zeros as u64, Ordering::Relaxed);
        self.values.fetch_add(values.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The share of zeros, and starts counting anew.
    pub(crate) fn take_share(&self) -> f64 {
        let zeros = self.zeros.swap(0, Ordering::Relaxed);
        zeros as f64 / self.values.swap(0, Ordering::Relaxed).max(1) as f64
    }
}

/// `x·w + b`, in hidden layers with a tanh around it, computed in f32 from f16 weights and activations.
fn dense(hidden: bool, x: &Value<f16>, w: &Value<f32>, b: &Value<f32>) -> Result<Value<f16>> {
    let w = w.cast::<f16>()?.cast::<f32>()?;
    let z = x.cast::<f32>()?.matmul(&w)?.add(b)?;
    if hidden { z.tanh()? } else { z }.cast()
}

/// The gradients of [`dense`] with respect to `x`, `w` and `b`, in f32.
fn dense_grads(
    hidden: bool,
    (x, w, y): (Value<f16>, Value<f32>, Value<f16>),
    grad: Value<f32>,
) -> Result<(Value<f32>, Value<f32>, Value<f32>)> {
    let y = y.cast::<f32>()?;
    let dz = if hidden { grad.mul(&y.mul(&y)?.neg()?.add_scalar(1.0)?)? } else { grad };
    let dx = dz.matmul(&w.transpose(0, 1)?)?;
    let dw = x.cast::<f32>()?.transpose(0, 1)?.matmul(&dz)?;
    Ok((dx, dw, dz.sum_axes(&[0], false)?))
}

/// Writes a layer; the two differ in their declaration, and in the dtypes that follow from it.
macro_rules! dense_layer {
    ($(#[$attribute:meta])+ $name:ident, gradient $gradient:ty) => {
        $(#[$attribute])+
        pub(crate) struct $name {
            zeros: Arc<Zeros>,
            hidden: bool,
        }

        impl Op for $name {
            type Inputs = (Tensor<f16, $gradient>, Tensor<f32>, Tensor<f32>);

            fn forward(
                &self,
                ctx: &mut Context,
                (x, w, b): (Value<f16>, Value<f32>, Value<f32>),
            ) -> Result<Value<f16>> {
                let y = dense(self.hidden, &x, &w, &b)?;
                ctx.save_for_backward((&x, &w, &y));
                Ok(y)
            }

            fn backward(
                &self,
                ctx: &Context,
                grad: Value<$gradient>,
            ) -> Result<(Value<$gradient>, Value<f32>, Value<f32>)> {
                self.zeros.count(&grad)?;
                let (dx, dw, db) = dense_grads(self.hidden, ctx.saved()?, grad.cast()?)?;
                Ok((dx.cast()?, dw, db))
            }
        }
    };
}

dense_layer! {
    /// Stored in f16, gradient in f32.
    #[autograd_function(out = f16, grad = f32)]
    Declared, gradient f32
}

dense_layer! {
    /// Stored in f16, nothing said: so the gradient comes in f16 as well.
    #[autograd_function(out = f16)]
    Undeclared, gradient f16
}

/// Compares the gradients of both layers with finite differences, hidden or not.
pub(crate) fn check_layers() -> Result<()> {
    let mut generator = Generator::new(0);
    let mut random = |shape: [usize; 2]| Tensor::<f32>::randn(shape, &mut generator);
    let (x, w, b) = (random([2, 3])?, random([3, 2])?, random([1, 2])?.reshape([2])?);
    // Each in the types that the layer takes.
    let (wide, narrow) = (x.cast::<f16>()?, Tensor::<f16>::from_dyn(x.as_dyn().cast(DType::F16)?)?);
    for hidden in [true, false] {
        let zeros = Arc::<Zeros>::default;
        gradcheck(Declared { zeros: zeros(), hidden }, (&wide, &w, &b))?;
        gradcheck(Undeclared { zeros: zeros(), hidden }, (&narrow, &w, &b))?;
    }
    Ok(())
}

/// Which layers a network is built of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gradient {
    /// [`Declared`]
    Declared,
    /// [`Undeclared`]
    Undeclared,
}

/// Weights and biases in f32, which are rounded to f16 where they are used.
pub(crate) struct Network {
    gradient: Gradient,
    parameters: Vec<[Tensor<f32>; 2]>,
    /// What the layers saw in backward.
    pub(crate) zeros: Arc<Zeros>,
}

impl Network {
    /// A network with layers of these widths, the same for the same seed.
    pub(crate) fn new(gradient: Gradient, widths: &[usize], seed: u64) -> Result<Self> {
        let mut generator = Generator::new(seed);
        let mut layer = |inputs: usize, outputs: usize| -> Result<[Tensor<f32>; 2]> {
            let scale = (1.0 / inputs as f64).sqrt();
            let w = Tensor::<f32>::randn([inputs, outputs], &mut generator)?.mul_scalar(scale)?;
            Ok([w.requiring_grad()?, Tensor::<f32>::zeros([outputs])?.requiring_grad()?])
        };
        let parameters = widths.windows(2).map(|w| layer(w[0], w[1])).collect::<Result<_>>()?;
        Ok(Self { gradient, parameters, zeros: Arc::default() })
    }

    /// The scores of each class, in f32.
    pub(crate) fn scores(&self, images: &Tensor<f16, f32>) -> Result<Tensor<f32>> {
        let layers = self.parameters.iter().zip((0..self.parameters.len()).rev());
        let zeros = || Arc::clone(&self.zeros);
        match self.gradient {
            Gradient::Declared => {
                let mut x = images.clone();
                for ([w, b], behind) in layers {
                    x = Declared { zeros: zeros(), hidden: behind > 0 }.apply((&x, w, b))?;
                }
                x.cast()
            }
            Gradient::Undeclared => {
                let mut x = images.narrow_grad::<f16>()?;
                for ([w, b], behind) in layers {
                    x = Undeclared { zeros: zeros(), hidden: behind > 0 }.apply((&x, w, b))?;
                }
                x.cast()
            }
        }
    }

    /// Weights and biases, for an optimizer.
    pub(crate) fn parameters(&mut self) -> Vec<&mut dyn Parameter> {
        self.parameters.iter_mut().flatten().map(|parameter| -> &mut dyn Parameter { parameter }).collect()
    }
}
