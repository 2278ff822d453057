//! What is no good is refused with an error that names the Function.

use gradpact::prelude::*;
use gradpact_torch::{FromTch, Torch};
use tch::Kind;

use crate::support::{Dyn, array, backward, call, leaf, values};

/// Returns whatever it is told to.
struct Answers(fn(&tch::Tensor) -> Vec<Option<tch::Tensor>>);

impl Function<Torch> for Answers {
    fn name(&self) -> &'static str {
        "Answers"
    }

    fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        Ok(array(&**inputs.get(0)?.array() * 1.0).into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        let answers = (self.0)(grads[0].as_ref().unwrap().array());
        answers.into_iter().map(|answer| answer.map(Dyn::from_tch).transpose()).collect()
    }
}

fn answered(answers: fn(&tch::Tensor) -> Vec<Option<tch::Tensor>>) -> Result<()> {
    let x = leaf(&[1.0, 2.0], Kind::Float);
    backward(&call(Answers(answers), &[&x]).unwrap()[0].sum(Kind::Float))
}

fn refused(answers: fn(&tch::Tensor) -> Vec<Option<tch::Tensor>>) -> String {
    let text = answered(answers).unwrap_err().to_string();
    assert!(text.contains("`Answers`"), "{text}");
    text
}

#[test]
fn a_gradient_of_another_shape_is_refused_also_if_it_could_be_summed() {
    for answers in [
        |grad: &tch::Tensor| vec![Some(grad.unsqueeze(0).repeat([3, 1]))],
        |grad: &tch::Tensor| vec![Some(grad.sum(Kind::Float))],
    ] {
        let text = refused(answers);
        assert!(text.contains("input 0 of `Answers` has the wrong shape for a leaf: expected [2]"), "{text}");
    }
}

#[test]
fn an_integer_a_complex_or_a_sparse_gradient_is_refused() {
    let text = refused(|grad| vec![Some(grad.to_kind(Kind::Int64))]);
    assert!(text.contains("input 0 of `Answers` is i64"), "{text}");
    let text = refused(|grad| vec![Some(grad.to_kind(Kind::ComplexFloat))]);
    assert!(text.contains("ComplexFloat"), "{text}");
    let text = refused(|grad| vec![Some(grad.to_sparse_sparse_dim(1))]);
    assert!(text.contains("to_dense"), "{text}");
}

#[test]
fn a_wrong_number_of_gradients_is_refused_and_trailing_nothing_is_not() {
    let text = refused(|grad| vec![Some(grad.copy()), Some(grad.copy())]);
    assert!(text.contains("returned 2 gradients, expected 1"), "{text}");
    refused(|_| vec![]);
    assert!(answered(|grad| vec![Some(grad.copy()), None]).is_ok());
    assert!(answered(|_| vec![None]).is_ok());
}

#[test]
fn an_undefined_gradient_is_refused() {
    let text = refused(|_| vec![Some(tch::Tensor::new())]);
    assert!(text.contains("undefined"), "{text}");
}

#[test]
fn a_float_gradient_of_another_dtype_is_converted_to_that_of_the_input() {
    assert!(answered(|grad| vec![Some(grad.to_kind(Kind::Half))]).is_ok());
}

#[test]
fn tensors_that_are_undefined_sparse_or_complex_are_refused() {
    for (tensor, what) in [
        (tch::Tensor::new(), "undefined"),
        (values(&[1.0, 0.0], Kind::Float).to_sparse_sparse_dim(1), "sparse"),
        (values(&[1.0], Kind::ComplexFloat), "ComplexFloat"),
    ] {
        let text = Dyn::from_tch(tensor.shallow_clone()).unwrap_err().to_string();
        assert!(text.contains(what), "{text}");
        if tensor.defined() {
            let text = backward(&tensor).unwrap_err().to_string();
            assert!(text.contains(what), "{text}");
        } else {
            assert!(backward(&tensor).is_err());
        }
    }
    let x = leaf(&[1.0], Kind::Float);
    let undefined = tch::Tensor::new();
    let roots = [(&x, Some(&undefined))];
    assert!(gradpact_torch::backward(&roots, BackwardOptions::new()).is_err());
    assert!(gradpact_torch::grad(&[(&x, None)], &[&undefined], BackwardOptions::new()).is_err());
    assert_eq!(gradpact_torch::grad_dtype(&undefined).unwrap(), None);
    assert_eq!(gradpact_torch::grad_fn_name(&undefined).unwrap(), None);
    assert!(gradpact_torch::set_grad_dtype(&undefined, GradDType::Any).is_err());
}

#[test]
fn seeds_that_do_not_fit_are_refused() {
    let x = leaf(&[1.0, 2.0], Kind::Float);
    let y = &x * 2.0;
    for seed in [values(&[1.0], Kind::Float), values(&[1.0, 1.0], Kind::Int64)] {
        let error = gradpact_torch::backward(&[(&y, Some(&seed))], BackwardOptions::new()).unwrap_err();
        assert!(error.to_string().contains("seed gradient"), "{error}");
    }
    let strict = gradpact_torch::backward(&[(&y, None)], BackwardOptions::new().strict()).unwrap_err();
    assert!(strict.to_string().contains("policy = strict"), "{strict}");
}

#[test]
fn an_integer_input_has_no_gradient_and_an_integer_output_none_to_declare() {
    struct Indexes;
    impl Function<Torch> for Indexes {
        fn name(&self) -> &'static str {
            "Indexes"
        }
        fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
            Ok(array(inputs.get(0)?.array().index_select(0, inputs.get(1)?.array())).into())
        }
        fn backward(&self, ctx: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
            assert!(!ctx.needs_input_grad(1));
            let grad = grads[0].clone();
            Ok([grad, None].into_iter().collect())
        }
    }
    let (x, index) = (leaf(&[1.0, 2.0], Kind::Float), values(&[1.0, 0.0], Kind::Int64));
    backward(&call(Indexes, &[&x, &index]).unwrap()[0].sum(Kind::Float)).unwrap();

    let (pass, _) = crate::support::Pass::new(DType::I8, GradDType::Exactly(DType::F32));
    let error = call(pass, &[&x]).unwrap_err().to_string();
    assert!(error.contains("`Pass`") && error.contains("output 0 is i8"), "{error}");
    let (pass, _) = crate::support::Pass::new(DType::I8, None);
    assert!(!call(pass, &[&x]).unwrap()[0].requires_grad());
}
