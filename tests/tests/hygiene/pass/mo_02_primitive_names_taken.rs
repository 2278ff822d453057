//! Every dtype word, and every primitive the expansion could want, is the name of something else here.

#![allow(dead_code, non_camel_case_types)]

use core::primitive;

use gradpact::{Context, Op, Result, Tensor, Value, autograd_function};

struct f16;
struct bf16;
struct f32;
struct f64;
struct f8e4m3;
struct i64;
struct u8;
struct usize;
struct bool;
struct str;
struct any;
struct none;

#[autograd_function(out = (f16, i64, bool, f8e4m3, bf16), grad = (f32, none, none, any, f64))]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<primitive::f32>;

    fn forward(&self, _: &mut Context, _: Value<primitive::f32>) -> Result<Five> {
        unimplemented!()
    }

    fn backward(&self, _: &Context, (grad, ..): FiveGradients) -> Result<Value<primitive::f32>> {
        Ok(grad)
    }
}

type Five = (
    Value<gradpact::f16>,
    Value<primitive::i64>,
    Value<primitive::bool>,
    Value<gradpact::f8e4m3>,
    Value<gradpact::bf16>,
);
type FiveGradients = (Value<primitive::f32>, (), (), gradpact::DynTensor, Value<primitive::f64>);

fn main() {}
