//! Lifetime parameters: the contract holds for every lifetime, formulas only for `'static`.

#![deny(warnings, single_use_lifetimes)]

use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
#[allow(single_use_lifetimes, reason = "the point of it")]
struct Named<'a, 'b: 'a, T: ?Sized + 'a> {
    name: &'a T,
    other: &'b str,
}

impl Op for Named<'static, 'static, str> {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        let _ = (self.name, self.other);
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

fn has_contract<T: gradpact::Contract>(_: &T) {}

fn main() {
    let name = String::from("short-lived");
    has_contract(&Named { name: name.as_str(), other: "static" });
}
