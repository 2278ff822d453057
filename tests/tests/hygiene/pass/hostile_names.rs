//! Structs, parameters, constants and macros with the names that an expansion might use.

#![allow(dead_code, non_camel_case_types, non_upper_case_globals)]

use gradpact::autograd_function;

const ctx: u8 = 0;
static inputs: u8 = 0;
struct grads;

struct Tensor;
struct Engine;
struct Contract;
struct Function;
struct Op;
struct GradDType;
struct DType;
enum Option {}
enum Some {}

#[allow(unused_macros)]
macro_rules! compile_error {
    () => {};
}

#[autograd_function(out = f16, grad = f32)]
struct __E;

#[autograd_function(out = f16, grad = any)]
struct Context<__E, E, D, G, Self_>(__E, E, D, G, Self_);

#[autograd_function(out = T, grad = none)]
struct Result<T: gradpact::Float, __E_ = T>(T, __E_)
where
    __E_: Into<__E>;

#[autograd_function(out = i8, grad = f32, crate = __E__::gradpact)]
struct Outputs;

mod __E__ {
    pub(crate) use gradpact;
}

fn main() {}
