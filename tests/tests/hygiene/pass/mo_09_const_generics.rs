//! Const parameters and defaults: kept on the struct, dropped from the impls.

#![deny(warnings)]

use core::marker::PhantomData;

use gradpact::prelude::*;

#[autograd_function(out = D, grad = f32)]
struct Kernel<D: Element = f16, const N: usize = 3, const M: usize = { 1 + 2 }>
where
    [f32; N]: Sized,
    [[f32; 3]; M]: Default,
    PhantomData<[D; 2 + 1]>: Copy,
{
    taps: [f32; N],
    dtype: PhantomData<[D; M]>,
}

impl<D: Float, const N: usize> Op for Kernel<D, N> {
    type Inputs = Tensor<D>;

    fn forward(&self, _: &mut Context, x: Value<D>) -> Result<Value<D>> {
        let _ = (self.taps, self.dtype);
        Ok(x)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<D>> {
        grad.cast()
    }
}

fn main() {
    let kernel = <Kernel>::default_taps();
    assert_eq!(Function::<gradpact::Cpu>::name(&kernel), "Kernel");
}

impl Kernel {
    fn default_taps() -> Self {
        Self { taps: [0.25, 0.5, 0.25], dtype: PhantomData }
    }
}
