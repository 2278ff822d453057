//! The chain in gradpact: by the typed API, declared and undeclared, and by the dynamic one.

use std::marker::PhantomData;

use gradpact::prelude::*;

use super::Chain;
use crate::Outcome;

/// Passes its input on, with the gradient dtype declared.
#[autograd_function(out = f32, grad = f32)]
#[derive(Debug)]
pub struct Declared;

/// Passes its input on; the gradient dtype is the default, which is the same one.
#[autograd_function(out = f32)]
#[derive(Debug)]
pub struct Undeclared;

macro_rules! passes_on {
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

        impl TypedChain for $function {
            fn step(x: &Tensor<f32>) -> Result<Tensor<f32>> {
                $function.apply(x)
            }
        }
    )*};
}
passes_on!(Declared Undeclared);

/// A function that can be put in a chain.
pub trait TypedChain: 'static {
    /// Applies it.
    ///
    /// # Errors
    /// None.
    fn step(x: &Tensor<f32>) -> Result<Tensor<f32>>;
}

fn leaf() -> Result<Tensor<f32>> {
    Tensor::<f32>::from_vec(vec![1.5], [1])?.requiring_grad()
}

/// A chain of `F` by the typed API.
#[derive(Debug)]
pub struct OurChain<F> {
    leaf: Tensor<f32>,
    function: PhantomData<F>,
}

impl<F> OurChain<F> {
    /// A chain on one element.
    ///
    /// # Errors
    /// None.
    pub fn new() -> Outcome<Self> {
        Ok(Self { leaf: leaf()?, function: PhantomData })
    }

    /// One with a hook that does nothing, at the leaf alone: what do other nodes pay for it?
    ///
    /// # Errors
    /// None.
    pub fn with_hook() -> Outcome<Self> {
        let chain = Self::new()?;
        chain.leaf.as_dyn().register_hook(|_| Ok(None))?;
        Ok(chain)
    }
}

impl<F: TypedChain> Chain for OurChain<F> {
    type End = Tensor<f32>;
    type Rest = Tensor<f32>;

    fn forward(&self, nodes: usize) -> Outcome<Tensor<f32>> {
        self.leaf.zero_grad();
        let mut y = F::step(&self.leaf)?;
        for _ in 1..nodes {
            y = F::step(&y)?;
        }
        Ok(y)
    }

    fn backward(&self, end: Tensor<f32>) -> Outcome<Tensor<f32>> {
        end.backward()?;
        Ok(end)
    }
}

/// The same function by hand, its dtypes known at run time; for any number of inputs.
#[derive(Debug)]
pub struct Pass {
    /// How many inputs it has.
    pub inputs: usize,
}

impl Function for Pass {
    fn name(&self) -> &'static str {
        "Pass"
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
        let x = inputs.get(0)?;
        ctx.save_for_backward(x);
        Ok(x.clone().into())
    }

    fn backward(&self, ctx: &Context, grads: Gradients) -> Result<Gradients> {
        let _x = ctx.saved_tensor(0)?;
        Ok(std::iter::repeat_n(grads[0].clone(), self.inputs).collect())
    }
}

/// A chain of [`Pass`].
#[derive(Debug)]
pub struct DynamicChain {
    leaf: DynTensor,
}

impl DynamicChain {
    /// A chain on one element.
    ///
    /// # Errors
    /// None.
    pub fn new() -> Outcome<Self> {
        Ok(Self { leaf: leaf()?.into_dyn() })
    }
}

impl Chain for DynamicChain {
    type End = DynTensor;
    type Rest = DynTensor;

    fn forward(&self, nodes: usize) -> Outcome<DynTensor> {
        self.leaf.zero_grad();
        let mut y = self.leaf.clone();
        for _ in 0..nodes {
            y = apply(Pass { inputs: 1 }, &[&y])?[0].clone();
        }
        Ok(y)
    }

    fn backward(&self, end: DynTensor) -> Outcome<DynTensor> {
        end.backward()?;
        Ok(end)
    }
}
