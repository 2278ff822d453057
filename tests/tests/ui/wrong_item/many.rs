// Several items that are not structs, and one struct with a mistake.
use gradpact::prelude::*;

#[autograd_function(out = f16, grad = f32)]
fn silu() {}

#[autograd_function(out = f16, grad = f32)]
enum Gelu {}

#[autograd_function(out = f16, grad = f32)]
trait Relu {}

#[autograd_function(out = f17)]
struct Elu;

fn main() {}
