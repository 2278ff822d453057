//! How a subject behaves beside giving right numbers: the same each time, with undefined gradients, with fewer inputs that
//! need one, on strided arrays.

use super::audit::{audit, input_slots, output_slots};
use super::precision::coarsest;
use super::readings::{full_numbers, seed_dtype};
use super::setup::{Setup, Transform, element_of};
use super::violation::Violation;
use crate::autograd::{DynTensor, Gradients, Outputs};
use crate::contract::GradDType;
use crate::cpu::Generator;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::{Context, Function, Inputs, apply};

/// One full run: gradients sent to every output, and what came of it at every leaf.
pub(super) struct Behaviour<'a> {
    setup: &'a Setup<'a>,
    outputs: &'a [DynTensor],
    leaves: &'a [DynTensor],
    seeds: Vec<Option<DynTensor>>,
    grads: Vec<Option<DynTensor>>,
    pub(super) violations: Vec<Violation>,
}

/// The tensor as it is.
pub(super) fn dense(tensor: &DynTensor) -> Result<DynTensor> {
    Ok(tensor.clone())
}

/// The same values at every second place of memory.
fn strided(tensor: &DynTensor) -> Result<DynTensor> {
    let tensor = tensor.detach();
    DynTensor::stack(&[&tensor, &tensor], -1)?.narrow(-1, 0, 1)?.squeeze(-1)
}

impl<'a> Behaviour<'a> {
    /// Runs a backward from all outputs at once. An error in it is a violation if others tell why, else it is passed on.
    pub(super) fn observe(
        setup: &'a Setup<'a>,
        outputs: &'a [DynTensor],
        leaves: &'a [DynTensor],
        generator: &mut Generator,
    ) -> Result<Self> {
        let mut seeds = Vec::new();
        for output in outputs {
            let values = full_numbers(output.shape().element_count(), output.dtype(), true, generator)?;
            let seed = output
                .requires_grad()
                .then(|| DynTensor::from_vec(values, output.shape())?.cast(seed_dtype(output)));
            seeds.push(seed.transpose()?);
        }
        let mut this = Self { setup, outputs, leaves, seeds, grads: Vec::new(), violations: Vec::new() };
        let result = setup.backward(outputs, leaves, &this.seeds);
        this.audit_full();
        match result {
            Ok(grads) => this.grads = grads,
            Err(error) if this.violations.is_empty() => return Err(error),
            Err(error) => this.violations.push(Violation::Failed(error.to_string())),
        }
        Ok(this)
    }

    /// Whether the backward ended well, so that there is something to compare with.
    pub(super) fn has_run(&self) -> bool {
        self.grads.len() == self.leaves.len()
    }

    /// Audits the calls since the last time, in which all seeds were sent.
    fn audit_full(&mut self) {
        let sent: Vec<_> = self.seeds.iter().map(|seed| seed.as_ref().map(DynTensor::dtype)).collect();
        self.audit_calls(&sent, true);
    }

    /// Audits the calls since the last time, in which not all seeds were sent, nor is it known where.
    fn audit_partial(&mut self) {
        self.audit_calls(&vec![None; self.seeds.len()], false);
    }

    fn audit_calls(&mut self, sent: &[Option<DType>], all_sent: bool) {
        let Some(log) = &self.setup.subject.log else { return };
        let (inputs, outputs) = (input_slots(self.setup), output_slots(self.setup, self.outputs, sent));
        self.violations.extend(audit(&log.take(), &inputs, &outputs, all_sent));
    }

    /// The same forward and backward once more: bit for bit the same?
    pub(super) fn repeat(&mut self) -> Result<()> {
        let (outputs, leaves) = self.setup.forward(&self.setup.checked, dense)?;
        let (untracked, _) = self.setup.forward(&[], dense)?;
        if !same_bits(self.outputs, &outputs)? || !same_bits(self.outputs, &untracked)? {
            self.violations.push(Violation::NotDeterministic("outputs".to_owned()));
            return Ok(());
        }
        let grads = self.setup.backward(&outputs, &leaves, &self.seeds)?;
        let flat = |grads: &[Option<DynTensor>]| grads.iter().flatten().cloned().collect::<Vec<_>>();
        if grads.len() != self.grads.len() || !same_bits(&flat(&self.grads), &flat(&grads))? {
            self.violations.push(Violation::NotDeterministic("gradients".to_owned()));
        }
        self.audit_full();
        Ok(())
    }

    /// Whether the outputs were the same each time: else finite differences would be of chance.
    pub(super) fn is_deterministic(&self) -> bool {
        !self.violations.contains(&Violation::NotDeterministic("outputs".to_owned()))
    }

    /// Undefined gradients: of each output beside others, and of all.
    pub(super) fn undefined(&mut self) -> Result<()> {
        let sent: Vec<usize> =
            (0..self.seeds.len()).filter(|&position| self.seeds[position].is_some()).collect();
        for &position in sent.iter().filter(|_| sent.len() > 1) {
            let mut zeros = self.seeds.clone();
            zeros[position] = zeros[position]
                .as_ref()
                .map(|seed| DynTensor::zeros(seed.shape(), seed.dtype()))
                .transpose()?;
            let mut undefined = self.seeds.clone();
            undefined[position] = None;
            let expected = self.setup.backward(self.outputs, self.leaves, &zeros)?;
            let got = self.setup.backward(self.outputs, self.leaves, &undefined);
            self.audit_partial();
            if let Some(problem) = self.compare(&self.setup.checked, &expected, got) {
                let case = format!("the gradient of output {position} is undefined");
                self.violations.push(Violation::Undefined { case, problem });
            }
        }
        let got = self.withheld(&sent);
        self.audit_partial();
        if let Some(problem) = self.compare(&self.setup.checked, &vec![None; self.leaves.len()], got) {
            let case = "the gradients of all outputs are undefined".to_owned();
            self.violations.push(Violation::Undefined { case, problem });
        }
        Ok(())
    }

    /// The gradients if what uses the outputs sends none back.
    fn withheld(&self, sent: &[usize]) -> Result<Vec<Option<DynTensor>>> {
        let differentiable: Vec<&DynTensor> = sent.iter().map(|&position| &self.outputs[position]).collect();
        let outputs = apply(Withhold, &differentiable)?;
        let ones = |output: &DynTensor| DynTensor::ones(output.shape(), DType::F32).map(Some);
        let seeds = outputs.iter().map(ones).collect::<Result<Vec<_>>>()?;
        self.setup.backward(&outputs, self.leaves, &seeds)
    }

    /// Each input as the only one that needs a gradient.
    pub(super) fn alone(&mut self) -> Result<()> {
        let checked = &self.setup.checked;
        for (nth, &position) in checked.iter().enumerate().filter(|_| checked.len() > 1) {
            let (outputs, leaves) = self.setup.forward(&[position], dense)?;
            let got = self.setup.backward(&outputs, &leaves, &self.seeds);
            self.audit_full();
            if let Some(problem) = self.compare(&[position], &self.grads[nth..=nth], got) {
                self.violations.push(Violation::Alone { place: self.setup.input_place(position), problem });
            }
        }
        Ok(())
    }

    /// Strided inputs, and strided gradients.
    pub(super) fn strided(&mut self) -> Result<()> {
        let got = self.run_on(strided);
        self.note_strided("strided inputs", got);
        let seeds = self
            .seeds
            .iter()
            .map(|seed| seed.as_ref().map(strided).transpose())
            .collect::<Result<Vec<_>>>()?;
        let got = self.setup.backward(self.outputs, self.leaves, &seeds);
        self.note_strided("strided gradients", got);
        Ok(())
    }

    fn run_on(&self, transform: Transform) -> Result<Vec<Option<DynTensor>>> {
        let (outputs, leaves) = self.setup.forward(&self.setup.checked, transform)?;
        self.setup.backward(&outputs, &leaves, &self.seeds)
    }

    fn note_strided(&mut self, case: &str, got: Result<Vec<Option<DynTensor>>>) {
        self.audit_full();
        if let Some(problem) = self.compare(&self.setup.checked, &self.grads, got) {
            self.violations.push(Violation::Strided { case: case.to_owned(), problem });
        }
    }

    /// How gradients of these inputs differ, in words; an undefined one counts as zero.
    fn compare(
        &self,
        inputs: &[usize],
        expected: &[Option<DynTensor>],
        got: Result<Vec<Option<DynTensor>>>,
    ) -> Option<String> {
        let got = match got {
            Ok(got) => got,
            Err(error) => return Some(error.to_string()),
        };
        let pairs = inputs.iter().zip(expected).zip(&got);
        pairs.into_iter().find_map(|((&input, expected), got)| {
            let difference = self.difference(input, expected.as_ref(), got.as_ref());
            difference.unwrap_or_else(|error| Some(error.to_string()))
        })
    }

    fn difference(
        &self,
        input: usize,
        expected: Option<&DynTensor>,
        got: Option<&DynTensor>,
    ) -> Result<Option<String>> {
        let data = self.setup.data(input)?;
        let values = |grad: Option<&DynTensor>| match grad {
            Some(grad) => grad.to_f64_vec(),
            None => Ok(vec![0.0; data.shape().element_count()]),
        };
        let (expected, got) = (values(expected)?, values(got)?);
        let grad_dtype = self.setup.inputs[input].grad_dtype.and_then(GradDType::dtype);
        let dtypes = self.outputs.iter().map(DynTensor::dtype).chain([data.dtype()]).chain(grad_dtype);
        let largest = expected.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let tolerance = coarsest(dtypes).rtol * largest;
        let differs = |&(_, (expected, got)): &(usize, (&f64, &f64))| {
            (expected - got).abs() > tolerance || expected.is_nan() != got.is_nan()
        };
        let first = expected.iter().zip(&got).enumerate().find(differs);
        Ok(first.map(|(element, (expected, got))| {
            let element = element_of(data, element);
            format!("the gradient of input {input} at {element:?} is {got}, expected {expected}")
        }))
    }
}

/// Whether tensors have the same dtypes, shapes and values, bit for bit.
fn same_bits(a: &[DynTensor], b: &[DynTensor]) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        let bits = |tensor: &DynTensor| {
            Ok::<_, Error>(tensor.to_f64_vec()?.into_iter().map(f64::to_bits).collect::<Vec<_>>())
        };
        if a.dtype() != b.dtype() || a.shape() != b.shape() || bits(a)? != bits(b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Passes values on and no gradient back.
struct Withhold;

impl Function for Withhold {
    fn name(&self) -> &'static str {
        "Withhold"
    }

    fn forward(&self, ctx: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        // A floating one for integers too, so that all outputs can be started from.
        ctx.set_output_grad_dtype(&vec![GradDType::Exactly(DType::F32); inputs.len()])?;
        Ok(inputs.iter().flatten().cloned().collect())
    }

    fn backward(&self, _: &Context, grads: Gradients) -> Result<Gradients> {
        Ok(grads.iter().map(|_| None).collect())
    }
}
