//! Errors and panics on their way through libtorch, both ways.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gradpact::prelude::*;
use gradpact_torch::{Torch, TorchError};
use tch::Kind;

use crate::support::{backward, call, leaf, read};

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("my error {0}")]
struct Mine(u32);

/// Where it goes wrong, and how.
#[derive(Clone, Copy)]
enum Fails {
    Nowhere,
    ForwardError,
    ForwardPanic,
    BackwardError,
    BackwardPanic,
    TchPanic,
    TchError,
}

impl Function<Torch> for Fails {
    fn name(&self) -> &'static str {
        "Fails"
    }

    fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        match self {
            Self::ForwardError => Err(Error::custom(Mine(1))),
            Self::ForwardPanic => panic!("forward {}", 2),
            _ => Ok(crate::support::array(&**inputs.get(0)?.array() * 1.0).into()),
        }
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        let wrong = || grads[0].as_ref().unwrap().array().f_view([17]).map(drop);
        match self {
            Self::BackwardError => Err(Error::custom(Mine(7))),
            Self::BackwardPanic => std::panic::panic_any(Mine(8)),
            Self::TchPanic => {
                wrong().unwrap();
                Ok(grads)
            }
            Self::TchError => {
                wrong().map_err(Error::custom)?;
                Ok(grads)
            }
            _ => Ok(grads),
        }
    }
}

fn failing(fails: Fails) -> (tch::Tensor, tch::Tensor) {
    let x = leaf(&[1.0, 2.0], Kind::Float);
    let y = call(fails, &[&x]).unwrap().remove(0).sum(Kind::Float);
    (x, y)
}

#[test]
fn an_error_of_forward_comes_back_typed_with_the_functions_name() {
    let x = leaf(&[1.0], Kind::Float);
    let error = call(Fails::ForwardError, &[&x]).unwrap_err();
    assert_eq!(error.downcast_ref::<Mine>(), Some(&Mine(1)));
    assert!(error.to_string().contains("forward of `Fails`"), "{error}");
    assert!(tch::no_grad(|| true) && (&x * 1.0).requires_grad(), "grad mode is as before");
}

#[test]
fn a_panic_of_forward_is_an_error_that_names_the_function() {
    let x = leaf(&[1.0], Kind::Float);
    let error = call(Fails::ForwardPanic, &[&x]).unwrap_err();
    assert!(
        matches!(&error, Error::Panicked { function, message, .. } if function == "Fails" && message == "forward 2")
    );
    assert!((&x * 1.0).requires_grad(), "grad mode is as before");
}

#[test]
fn an_error_of_backward_comes_back_typed_through_libtorchs_engine() {
    let (x, y) = failing(Fails::BackwardError);
    let error = backward(&y).unwrap_err();
    assert_eq!(error.downcast_ref::<Mine>(), Some(&Mine(7)));
    assert!(error.to_string().contains("backward of `Fails`"), "{error}");
    assert!(!x.grad().defined());
    let (x, y) = failing(Fails::BackwardError);
    let error = gradpact_torch::grad(&[(&y, None)], &[&x], BackwardOptions::new()).unwrap_err();
    assert_eq!(error.downcast_ref::<Mine>(), Some(&Mine(7)));
}

#[test]
fn tchs_own_backward_reports_the_text_of_an_error_or_a_panic() {
    let error = failing(Fails::BackwardError).1.f_backward().unwrap_err();
    assert!(error.to_string().contains("backward of `Fails`: my error 7"), "{error}");
    let error = failing(Fails::TchPanic).1.f_backward().unwrap_err();
    assert!(error.to_string().contains("backward of `Fails` panicked"), "{error}");
}

#[test]
fn a_panic_of_backward_is_resumed_at_the_caller_with_its_payload() {
    let (_, y) = failing(Fails::BackwardPanic);
    let panic = catch_unwind(AssertUnwindSafe(|| backward(&y))).unwrap_err();
    assert_eq!(panic.downcast_ref::<Mine>(), Some(&Mine(8)));
    let (_, y) = failing(Fails::TchPanic);
    assert!(catch_unwind(AssertUnwindSafe(|| backward(&y))).is_err());
}

#[test]
fn an_exception_of_libtorch_inside_backward_is_an_error_that_names_the_function() {
    let error = backward(&failing(Fails::TchError).1).unwrap_err();
    assert!(error.to_string().contains("backward of `Fails`"), "{error}");
}

#[test]
fn an_exception_of_libtorchs_engine_is_an_error() {
    let (_, y) = failing(Fails::Nowhere);
    backward(&y).unwrap();
    let x = leaf(&[1.0, 2.0], Kind::Float);
    let error = backward(&(&x * 2.0)).unwrap_err();
    let torch = error.downcast_ref::<TorchError>().unwrap();
    assert!(torch.message.contains("scalar outputs"), "{error}");
    let unused = leaf(&[1.0], Kind::Float);
    let z = x.sum(Kind::Float);
    assert!(gradpact_torch::grad(&[(&z, None)], &[&unused], BackwardOptions::new()).is_err());
    let allowed = BackwardOptions::new().allow_unused();
    let z = x.sum(Kind::Float);
    assert!(gradpact_torch::grad(&[(&z, None)], &[&unused], allowed).unwrap()[0].is_none());
    let zeros = BackwardOptions::new().materialize_grads();
    let z = x.sum(Kind::Float);
    let grads = gradpact_torch::grad(&[(&z, None)], &[&unused], zeros).unwrap();
    assert_eq!(read(grads[0].as_ref().unwrap()), [0.0]);
}

#[test]
fn what_was_declared_wrongly_is_an_error_also_where_nothing_is_recorded() {
    struct Declares(Vec<GradDType>);
    impl Function<Torch> for Declares {
        fn name(&self) -> &'static str {
            "Declares"
        }
        fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
            let _ = ctx.set_output_grad_dtype(&self.0);
            Ok(inputs.get(0)?.clone().into())
        }
        fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
            Ok(grads)
        }
    }
    let x = tch::Tensor::from_slice(&[1.0_f32]);
    let two = call(Declares(vec![GradDType::Any; 2]), &[&x]).unwrap_err();
    assert!(matches!(two, Error::DeclarationCount { declared: 2, outputs: 1, .. }), "{two}");
    let integer = call(Declares(vec![GradDType::Exactly(DType::I32)]), &[&x]).unwrap_err();
    assert!(matches!(integer, Error::DeclaredNotFloat { .. }), "{integer}");
}
