//! Structs in function bodies, in methods, in blocks and in constants.

#![deny(warnings)]

use gradpact::prelude::*;

struct Owner;

trait Build {
    fn build(&self) -> &'static str;
}

impl Build for Owner {
    fn build(&self) -> &'static str {
        #[autograd_function(out = f16, grad = f32)]
        struct Silu;

        impl Op for Silu {
            type Inputs = Tensor<f32>;

            fn forward(&self, _: &mut Context, x: Value<f32>) -> gradpact::Result<Value<f16>> {
                x.cast()
            }

            fn backward(&self, _: &Context, grad: Value<f32>) -> gradpact::Result<Value<f32>> {
                Ok(grad)
            }
        }

        fn name(function: &impl Function) -> &'static str {
            function.name()
        }
        name(&Silu)
    }
}

const _: () = {
    #[autograd_function(out = bf16)]
    struct InAConstant;

    const fn has_contract<T: gradpact::Contract>(_: &T) {}
    has_contract(&InAConstant);
};

fn main() {
    assert_eq!(Owner.build(), "Silu");
}
