//! Whatever a user passes, returns or forgets: an error that names Function, position, expected and got; and everything is
//! as usable afterwards as before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cuts;
mod declarations;
mod gradients;
mod leaves;
mod saved;
mod user_code;
mod values;

use gradpact::autograd::{Gradients, Outputs};
use gradpact::{Context, DType, Error, Function, Inputs, Result, apply};
use gradpact_tests::toy::{Toy, ToyTensor, tensor};

type Forward = dyn Fn(&mut Context<Toy>, &Inputs<'_, Toy>) -> Result<Outputs<Toy>> + Send + Sync;
type Backward = dyn Fn(&Context<Toy>, Gradients<Toy>) -> Result<Gradients<Toy>> + Send + Sync;

/// A Function whose halves are closures; called `Probe` unless it is named.
struct Probe {
    name: &'static str,
    forward: Box<Forward>,
    backward: Box<Backward>,
}

impl Probe {
    /// Gives its first input out, and the gradient of its first output back.
    fn identity() -> Self {
        Self {
            name: "Probe",
            forward: Box::new(|_, inputs| Ok(inputs.get(0)?.clone().into())),
            backward: Box::new(|_, grads| Ok(grads[0].clone().into())),
        }
    }

    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    fn forward(
        self,
        forward: impl Fn(&mut Context<Toy>, &Inputs<'_, Toy>) -> Result<Outputs<Toy>> + Send + Sync + 'static,
    ) -> Self {
        Self { forward: Box::new(forward), ..self }
    }

    fn backward(
        self,
        backward: impl Fn(&Context<Toy>, Gradients<Toy>) -> Result<Gradients<Toy>> + Send + Sync + 'static,
    ) -> Self {
        Self { backward: Box::new(backward), ..self }
    }

    /// Its first output.
    fn on(self, inputs: &[&ToyTensor]) -> Result<ToyTensor> {
        Ok(apply(self, inputs)?[0].clone())
    }
}

impl Function<Toy> for Probe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, ctx: &mut Context<Toy>, inputs: &Inputs<'_, Toy>) -> Result<Outputs<Toy>> {
        (self.forward)(ctx, inputs)
    }

    fn backward(&self, ctx: &Context<Toy>, grads: Gradients<Toy>) -> Result<Gradients<Toy>> {
        (self.backward)(ctx, grads)
    }
}

/// An `f32` leaf.
fn leaf(values: &[f64]) -> ToyTensor {
    tensor(DType::F32, values).requiring_grad().unwrap()
}

fn values(tensor: &ToyTensor) -> Vec<f64> {
    tensor.array().values().to_vec()
}

/// The error's text has every part.
#[track_caller]
fn says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
}

/// A leaf that took part in something that failed still has no gradient, and still gets one.
#[track_caller]
fn still_works(x: &ToyTensor) {
    assert!(x.grad().is_none());
    let seed = tensor(DType::F32, &vec![2.0; x.shape().element_count()]);
    let y = Probe::identity().on(&[x]).unwrap();
    y.backward_with(&seed, gradpact::BackwardOptions::new()).unwrap();
    assert_eq!(values(&x.grad().unwrap()), values(&seed));
    x.zero_grad();
}
