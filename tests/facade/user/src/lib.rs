//! MO-04: the runtime is reached through a façade; MO-10: from edition 2021.

use facade::prelude::*;

/// `x`, stored in half precision.
#[facade::autograd_function(out = f16, grad = f32, crate = facade::gradpact)]
#[derive(Clone, Copy, Debug)]
pub struct Halve;

impl Op for Halve {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

/// `x`, stored in any dtype.
#[facade::autograd_function(out = T, grad = f32, crate = ::facade::gradpact)]
#[derive(Clone, Copy, Debug)]
pub struct Store<'a, T: Float> {
    /// What it is stored for.
    pub reason: &'a str,
    /// An example.
    pub example: T,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_behind_a_facade_is_a_function() {
        assert_eq!(Function::<facade::gradpact::Cpu>::name(&Halve), "Halve");
    }
}
