//! Cases that change a tensor in place, which only libtorch's tensors allow: a result of a Function, and a saved input.

use gradpact::{BackwardOptions, DType, Error};
use gradpact_tests::conformance::Subject as _;
use gradpact_tests::conformance::outcome::{Failed, Outcome};
use gradpact_tests::conformance::probe::{Log, Probe};
use gradpact_tests::conformance::row::{Row, grad_dtype};
use gradpact_tests::conformance::rules::Rule;
use gradpact_tests::conformance::runs::surroundings::seed;
use gradpact_tests::conformance::step::Step;
use tch::Tensor;

use crate::subject::{Libtorch, taken};

/// `10.then_inplace/on_…/DECLARED`: a result, or its first element, is doubled in place.
pub(crate) fn doubled(row: &Row) -> Step {
    let [name, declared] = row.parts()[..] else { panic!("{}", row.id) };
    let declared = grad_dtype(declared).unwrap();
    let forward = match name {
        "on_view_output" => |x: &Tensor| x.view([-1]),
        "on_input_as_is_output" => Tensor::shallow_clone,
        _ => Tensor::copy,
    };
    let log = Log::default();
    let x = Libtorch::leaf(DType::F16, &[1.0, 2.0]);
    let input = Libtorch::same(&x).unwrap();
    let probe = Probe::<Libtorch>::new(&log, move |ctx, inputs| {
        ctx.set_output_grad_dtype(&[declared])?;
        Ok(taken(forward(inputs.get(0)?.array())).into())
    });
    let y = probe.on(&input).unwrap()[0].array().tensor().shallow_clone();
    let mut changed = if name == "on_view_of_fresh_output" { y.narrow(0, 0, 1) } else { y.shallow_clone() };
    let result = match changed.f_mul_(&Tensor::from(2.0)) {
        Err(error) => return Step::equal(failing(&log, &error), row.measured(&[])),
        Ok(_) => taken(y).backward_with(&Libtorch::vector(&seed()), BackwardOptions::new()),
    };
    let ours = Outcome::left::<Libtorch>(&log, Some(&x)).failing("backward", result);
    Step::equal(ours, row.measured(&[]))
}

fn failing(log: &Log, error: &tch::TchError) -> Outcome {
    Outcome::left::<Libtorch>(log, None).failing("use", Err(Error::custom(error.to_string())))
}

/// `10.saved/input_modified_in_place`: what was saved has changed until backward asks for it.
pub(crate) fn saved(row: &Row) -> Step {
    let log = Log::default();
    let x = Libtorch::leaf(DType::F32, &[1.0, 2.0]);
    let input = Libtorch::same(&x).unwrap();
    let probe = Probe::<Libtorch>::new(&log, |ctx, inputs| {
        ctx.save_for_backward(inputs.get(0)?);
        ctx.set_output_grad_dtype(&[gradpact::GradDType::Exactly(DType::F32)])?;
        Ok(inputs.get(0)?.cast(DType::F16)?.into())
    });
    let y = probe.on(&input).unwrap()[0].clone();
    let _ = input.array().shallow_clone().f_add_scalar_(1.0);
    let result = y.backward_with(&Libtorch::vector(&seed()), BackwardOptions::new());
    let ours = Outcome::left::<Libtorch>(&log, Some(&x)).failing("backward", result);
    // Backward never ran.
    let by_rule = Outcome { failed: Some(Failed::measured("backward")), ..Outcome::default() };
    Step::modelled(ours, row.measured(&[]), Rule::FetchedFirst, by_rule)
}
