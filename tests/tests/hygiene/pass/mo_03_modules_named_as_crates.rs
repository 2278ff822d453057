//! Modules called `core`, `std` and `alloc` lie beside the struct, and one called `gradpact`.

#![allow(dead_code)]

mod core {}
mod std {}
mod alloc {}

mod inner {
    use ::gradpact::{Context, Op, Result, Tensor, Value, autograd_function, f16};

    mod gradpact {}
    mod core {}
    mod __private {}

    #[autograd_function(out = f16, grad = f32)]
    struct Silu;

    impl Op for Silu {
        type Inputs = Tensor<f32>;

        fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
            x.cast()
        }

        fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
            Ok(grad)
        }
    }
}

fn main() {}
