// The mistakes are a macro's arguments: the errors point at them, not at the macro.
use gradpact::prelude::*;

macro_rules! function {
    ($name:ident, $out:ident, $grad:ty) => {
        #[autograd_function(out = $out, grad = $grad)]
        struct $name;
    };
}

function!(Silu, fp16, half::f16);

fn main() {}
