//! try
#![allow(clippy::print_stdout, reason = "x")]
use gradpact::audit;
use gradpact::autograd::label;
use gradpact::prelude::*;

#[autograd_function(out = f16)]
struct Wrapper;
impl Op for Wrapper {
    type Inputs = Tensor<bf16, f32>;
    fn forward(&self, _: &mut Context, x: Value<bf16>) -> Result<Value<f16>> {
        x.cast()
    }
    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f32>> {
        grad.cast()
    }
}
#[autograd_function(out = f16, grad = f16)]
#[derive(Clone)]
struct Hop;
impl Op for Hop {
    type Inputs = Tensor<f16>;
    fn forward(&self, _: &mut Context, x: Value<f16>) -> Result<Value<f16>> {
        x.mul_scalar(0.01)
    }
    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f16>> {
        grad.mul_scalar(0.01)
    }
}
fn main() -> Result<()> {
    let (r, a) = audit::record(|| -> Result<()> {
        let x = Tensor::<bf16>::ones([2])?.requiring_grad_in::<f32>()?;
        let y = label("wrap", || Wrapper.apply(&x))?;
        let w = DynTensor::from_vec(vec![257.0_f32, 0.1], [2])?;
        let z = y.as_dyn().cast(DType::F32)?.mul(&w)?.sum()?;
        z.backward()
    });
    r?;
    std::fs::write("/tmp/try/a.svg", a.picture().to_svg()).unwrap();
    println!("{a}\n{}", a.summary());
    let (r, b) = audit::record(|| -> Result<()> {
        let x = Tensor::<f16>::scalar(1.0).requiring_grad()?;
        let mut y = x.clone();
        for hop in 0..4 {
            y = label(&format!("hop {hop}"), || Hop.apply(&y))?;
        }
        y.backward()
    });
    r?;
    std::fs::write("/tmp/try/b.svg", b.picture().to_svg()).unwrap();
    println!("{b}\n{}", b.summary());
    println!("{}", a.compare(&b));
    println!("{}", a.assert_lossless().unwrap_err());
    let mut v = vec![];
    b.write(&mut v, audit::Format::JsonLines).unwrap();
    println!("{}", String::from_utf8(v).unwrap());
    Ok(())
}
