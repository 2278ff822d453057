//! Names that are keywords, and what errors will call them.

#![deny(warnings)]
#![allow(non_camel_case_types)]

use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
struct r#type<r#fn: Element> {
    r#struct: r#fn,
}

impl<r#fn: Element> Op for r#type<r#fn> {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        let _ = self.r#struct;
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

#[autograd_function(out = r#fn)]
struct Parameter<r#fn: Float>(r#fn);

fn main() {
    assert_eq!(Function::<gradpact::Cpu>::name(&r#type { r#struct: 1.0_f32 }), "type");
    let _ = Parameter(1.0_f32).0;
}
