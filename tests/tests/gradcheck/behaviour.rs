//! Undefined gradients, determinism, fewer inputs that need a gradient, strided arrays.

use std::sync::atomic::{AtomicU64, Ordering};

use gradpact::prelude::*;
use gradpact::testing::{Gradcheck, gradcheck, gradcheck_fn};

use crate::support::{Custom, Found, of, only};

fn x() -> DynTensor {
    of(DType::F64, &[0.5, -1.0, 1.5, 0.25], [2, 2])
}

/// The text of what is broken, where the numbers are right.
fn violations(function: Custom, inputs: &[&DynTensor]) -> Vec<String> {
    let report = Gradcheck::new().check(function, inputs).found();
    assert!(report.mismatches().is_empty(), "{report}");
    report.violations().iter().map(ToString::to_string).collect()
}

/// Two outputs, `2x` and `3x`; unused ones give backward `None`.
fn two_outputs(backward: fn(Option<&DynTensor>, Option<&DynTensor>) -> Result<Option<DynTensor>>) -> Custom {
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_materialize_grads(false);
        Ok([inputs.get(0)?.mul_scalar(2.0)?, inputs.get(0)?.mul_scalar(3.0)?].into())
    };
    Custom::new(forward, move |_, grads| Ok(backward(grads[0].as_ref(), grads[1].as_ref())?.into()))
}

#[test]
fn an_undefined_gradient_must_count_as_zero() {
    let right = two_outputs(|a, b| match (a, b) {
        (Some(a), Some(b)) => a.mul_scalar(2.0)?.add(&b.mul_scalar(3.0)?).map(Some),
        (Some(a), None) => a.mul_scalar(2.0).map(Some),
        (None, Some(b)) => b.mul_scalar(3.0).map(Some),
        (None, None) => Ok(None),
    });
    assert_eq!(violations(right, &[&x()]), Vec::<String>::new());
    let constant = two_outputs(|a, b| match (a, b) {
        (Some(a), Some(b)) => a.mul_scalar(2.0)?.add(&b.mul_scalar(3.0)?).map(Some),
        (Some(a), None) => a.mul_scalar(2.0).map(Some),
        (None, Some(b)) => b.mul_scalar(3.0).map(Some),
        (None, None) => DynTensor::ones([2, 2], DType::F64).map(Some),
    });
    assert_eq!(
        violations(constant, &[&x()]),
        ["the gradients of all outputs are undefined: the gradient of input 0 at [0, 0] is 1, expected 0"]
    );
}

#[test]
fn a_backward_that_fails_without_a_gradient_is_found() {
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_materialize_grads(false);
        Ok(inputs.get(0)?.mul_scalar(2.0)?.into())
    };
    let function = Custom::new(forward, |_, grads| Ok(only(&grads).mul_scalar(2.0)?.into()));
    let found = violations(function, &[&x()]);
    assert!(
        found[0].starts_with("the gradients of all outputs are undefined: backward of `Custom` panicked"),
        "{found:?}"
    );
}

#[test]
fn zeros_for_an_unused_output_arrive_in_the_declared_dtype() {
    // Outputs in f16 with gradients in f32: a check of it runs backward with either one unused, and with both.
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32); 2])?;
        let half = inputs.get(0)?.cast(DType::F16)?;
        Ok([half.mul_scalar(2.0)?, half.mul_scalar(3.0)?].into())
    };
    let function = Custom::new(forward, |_, grads| {
        let grads: Vec<&DynTensor> = grads.iter().map(|grad| grad.as_ref().unwrap()).collect();
        assert!(grads.iter().all(|grad| grad.dtype() == DType::F32), "also the zeros");
        Ok(grads[0].mul_scalar(2.0)?.add(&grads[1].mul_scalar(3.0)?)?.into())
    });
    gradcheck(function, &x().cast(DType::F32).unwrap()).unwrap();
}

#[test]
fn results_that_change_from_run_to_run_are_found() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let count = || RUNS.fetch_add(1, Ordering::Relaxed) as f64;
    let forward = move |_: &mut Context, inputs: &Inputs<'_>| Ok(inputs.get(0)?.add_scalar(count())?.into());
    let report = Gradcheck::new().check(Custom::new(forward, |_, grads| Ok(grads)), &x()).found();
    assert_eq!(report.violations()[0].to_string(), "two runs on the same inputs give different outputs");
    assert!(report.accuracy().is_empty(), "differences of such outputs mean nothing: {report}");
    let forward = |_: &mut Context, inputs: &Inputs<'_>| Ok(inputs.get(0)?.clone().into());
    // The last bit only: no tolerance would see it.
    let backward = move |_: &Context, grads: Gradients| {
        let factor = if (count() as u64).is_multiple_of(2) { 1.0 } else { 1.0 + f64::EPSILON };
        Ok(only(&grads).mul_scalar(factor)?.into())
    };
    let found = violations(Custom::new(forward, backward), &[&x()]);
    assert_eq!(found, ["two runs on the same inputs give different gradients"]);
}

#[test]
fn a_forward_that_depends_on_what_needs_a_gradient_is_found() {
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        let factor = if ctx.needs_input_grad(0) { 1.0 } else { 1.5 };
        Ok(inputs.get(0)?.mul_scalar(factor)?.into())
    };
    let report = Gradcheck::new().check(Custom::new(forward, |_, grads| Ok(grads)), &x()).found();
    assert!(report.to_string().contains("different outputs"), "{report}");
}

#[test]
fn a_gradient_that_depends_on_whether_another_one_is_needed_is_found() {
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.save_for_backward((inputs.get(0)?, inputs.get(1)?));
        Ok(inputs.get(0)?.mul(inputs.get(1)?)?.into())
    };
    let skipping = |ctx: &Context, grads: Gradients| {
        let (a, b) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        let of_a = ctx.needs_input_grad(0).then(|| only(&grads).mul(b)).transpose()?;
        // The mistake: it looks at the wrong input.
        let of_b = ctx.needs_input_grad(0).then(|| only(&grads).mul(a)).transpose()?;
        Ok([of_a, of_b].into())
    };
    let found = violations(Custom::new(forward, skipping), &[&x(), &x()]);
    assert!(
        found.iter().any(|text| text.starts_with("if input 1 of `Custom` alone needs a gradient:")),
        "{found:?}"
    );
    assert!(!found.iter().any(|text| text.contains("if input 0")), "{found:?}");
}

#[test]
fn inputs_that_need_no_gradient_are_left_alone() {
    let index = DynTensor::from_vec(vec![1_i64, 0], [2]).unwrap();
    let forward =
        |_: &mut Context, inputs: &Inputs<'_>| Ok(inputs.get(0)?.index_select(0, inputs.get(1)?)?.into());
    let function = Custom::new(forward, |_, grads| {
        let swapped = DynTensor::cat(&[&only(&grads).narrow(0, 1, 1)?, &only(&grads).narrow(0, 0, 1)?], 0)?;
        Ok([Some(swapped), None].into())
    });
    let report = gradcheck(function, [&x(), &index]).unwrap();
    assert_eq!(report.accuracy().len(), 1, "{report}");
}

#[test]
fn a_function_that_reads_memory_instead_of_elements_is_found() {
    // It is right for dense inputs only: a strided one it takes for another.
    let forward = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.save_for_backward(inputs.get(0)?);
        ctx.store(ctx.needs_input_grad(0));
        Ok(inputs.get(0)?.mul_scalar(2.0)?.into())
    };
    let first = AtomicU64::new(0);
    let backward = move |_: &Context, grads: Gradients| {
        // The runs before: one to observe, one repeated, one undefined. The fourth is the one on strided inputs.
        let run = first.fetch_add(1, Ordering::Relaxed);
        only(&grads).mul_scalar(if run == 3 { 4.0 } else { 2.0 }).map(Into::into)
    };
    let found = violations(Custom::new(forward, backward), &[&x()]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("with strided inputs: the gradient of input 0 at [0, 0] is"), "{found:?}");
}

#[test]
fn a_closure_cannot_leave_inputs_out_and_a_check_of_nothing_is_an_error() {
    let none: Option<&DynTensor> = None;
    let text = |result: Result<gradpact::testing::GradcheckReport>| result.unwrap_err().to_string();
    assert!(text(gradcheck_fn(|x| x[0].sin(), (&x(), none))).contains("input 1 of a closure is left out"));
    let integers = DynTensor::from_vec(vec![1_i64], [1]).unwrap();
    assert!(
        text(gradcheck_fn(|x| x[0].cast(DType::F32), &integers))
            .contains("no input of `closure` has a gradient")
    );
    assert!(
        text(gradcheck_fn(|x| x[0].cast(DType::I64), &x())).contains("no output of `closure` has a gradient")
    );
    let empty: [&DynTensor; 0] = [];
    assert!(text(gradcheck_fn(|_| Ok(x()), empty)).contains("nothing to check"));
    let mark = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.mark_non_differentiable(&[0]);
        Ok(inputs.get(0)?.clone().into())
    };
    assert!(text(gradcheck(Custom::new(mark, |_, grads| Ok(grads)), &x())).contains("no output of `Custom`"));
}

#[test]
fn a_graph_that_is_cut_by_mistake_is_found_by_its_numbers() {
    let error = gradcheck_fn(|x| x[0].detach().sin(), &x()).unwrap_err().to_string();
    assert!(error.contains("analytic 0.0, numeric"), "{error}");
}

#[test]
fn a_backward_that_is_right_for_positive_gradients_alone_is_found() {
    let wrong: [fn(&DynTensor) -> Result<DynTensor>; 2] = [DynTensor::abs, DynTensor::relu];
    for wrong in wrong {
        for dtype in DType::FLOATS {
            let function = Custom::double(dtype, None, move |grad| wrong(grad)?.mul_scalar(2.0));
            let report = Gradcheck::new().check(function, &of(dtype, &[0.5, -1.0, 1.5], [3])).found();
            assert!(report.mismatches().is_empty(), "{report}");
            assert!(report.to_string().contains("or backward is not linear: scaled by -"), "{report}");
        }
    }
}
