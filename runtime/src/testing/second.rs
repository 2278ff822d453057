//! Second derivatives: the backward of a subject, as a function of its inputs and of the gradients of its outputs, is
//! checked like any other.

use core::cell::RefCell;

use super::audit::{audit, input_slots, output_slots};
use super::behaviour::dense;
use super::inputs::GivenInput;
use super::options::Gradcheck;
use super::readings::{full_numbers, seed_dtype};
use super::report::GradcheckReport;
use super::run::run;
use super::setup::{Input, Setup, bad_argument};
use super::subject::Subject;
use super::violation::Violation;
use crate::autograd::{BackwardOptions, DynTensor, Outputs, grad};
use crate::contract::GradDType;
use crate::cpu::Generator;
use crate::error::Result;

/// Checks the second derivatives of a subject.
pub(super) fn check_second(
    options: &Gradcheck<'_>,
    subject: &Subject<'_>,
    given: Vec<GivenInput>,
) -> Result<GradcheckReport> {
    if options.reference.is_some() {
        return Err(bad_argument("`against` is for first derivatives"));
    }
    let first = Setup::new(options, subject, given)?;
    let (outputs, _) = first.forward(&first.checked, dense)?;
    let differentiable: Vec<usize> =
        (0..outputs.len()).filter(|&position| outputs[position].requires_grad()).collect();
    if differentiable.is_empty() {
        return Err(bad_argument(format!(
            "no output of `{}` has a gradient: nothing to check",
            subject.name
        )));
    }
    let seeds = seeds(options, &outputs, &differentiable)?;
    let violations = RefCell::new(Vec::new());
    let second = Subject {
        name: format!("gradient of {}", subject.name),
        run: Box::new(|inputs| gradients(&first, &differentiable, inputs, &violations)),
        log: None,
    };
    let mut inner: Vec<_> =
        outputs.iter().chain(&seeds).map(DynTensor::dtype).filter(|dtype| dtype.is_float()).collect();
    inner.dedup();
    let setup = Setup {
        options,
        subject: &second,
        checked: first
            .checked
            .iter()
            .copied()
            .chain(first.inputs.len()..first.inputs.len() + seeds.len())
            .collect(),
        inputs: inputs(&first, &seeds),
        inner,
        is_second: true,
    };
    let mut report = run(&setup)?;
    drop(setup);
    drop(second);
    report.add(violations.into_inner(), options);
    Ok(report)
}

/// The gradients that are sent to the outputs: inputs of the second check.
fn seeds(options: &Gradcheck<'_>, outputs: &[DynTensor], differentiable: &[usize]) -> Result<Vec<DynTensor>> {
    let mut generator = Generator::new(options.seed);
    let seed = |&position: &usize| {
        let output = &outputs[position];
        let values = full_numbers(output.shape().element_count(), output.dtype(), true, &mut generator)?;
        DynTensor::from_vec(values, output.shape())?.cast(seed_dtype(output))
    };
    differentiable.iter().map(seed).collect()
}

/// The inputs of the first check, then the seeds.
fn inputs(first: &Setup<'_>, seeds: &[DynTensor]) -> Vec<Input> {
    let of_first =
        first.inputs.iter().map(|input| Input { data: input.data.clone(), grad_dtype: input.grad_dtype });
    let of_seed = |seed: &DynTensor| Input {
        data: Some(seed.clone()),
        grad_dtype: Some(GradDType::Exactly(seed.dtype())),
    };
    of_first.chain(seeds.iter().map(of_seed)).collect()
}

/// The gradients of the first check's inputs, differentiable again.
fn gradients(
    first: &Setup<'_>,
    differentiable: &[usize],
    inputs: &[Option<&DynTensor>],
    violations: &RefCell<Vec<Violation>>,
) -> Result<Outputs> {
    let (own, seeds) = inputs.split_at(first.inputs.len());
    let mut leaves = Vec::new();
    for &position in &first.checked {
        let input = own[position].map_or_else(|| first.data(position).cloned(), |input| Ok(input.clone()))?;
        // Where differences are taken the inputs are plain values.
        leaves.push(if input.requires_grad() { input } else { first.inputs[position].leaf(&input)? });
    }
    let mut own = own.to_vec();
    for (&position, leaf) in first.checked.iter().zip(&leaves) {
        own[position] = Some(leaf);
    }
    let outputs = (first.subject.run)(&own)?;
    let seeds = differentiable
        .iter()
        .zip(seeds)
        .filter_map(|(&position, seed)| Some((outputs.get(position)?, *seed)));
    let roots: Vec<_> = seeds.filter(|(output, _)| output.requires_grad()).collect();
    let options = BackwardOptions::new().create_graph().materialize_grads();
    let grads = grad(&roots, &leaves.iter().collect::<Vec<_>>(), options)?;
    if let Some(log) = &first.subject.log {
        let mut sent = vec![None; outputs.len()];
        differentiable
            .iter()
            .zip(inputs.iter().skip(own.len()))
            .for_each(|(&position, seed)| sent[position] = seed.map(DynTensor::dtype));
        let (inputs, outputs) = (input_slots(first), output_slots(first, &outputs, &sent));
        violations.borrow_mut().extend(audit(&log.take(), &inputs, &outputs, true));
    }
    Ok(grads.into_iter().flatten().collect())
}
