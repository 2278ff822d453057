//! Derivatives by finite differences, from the outputs of the subject or of what stands for it.

use super::differences::{Evaluation, Slope, slopes};
use super::noise::{POINTS, scatter};
use super::precision::{Precision, coarsest, precision};
use super::readings::{COMBINATIONS, Readings, full_numbers};
use super::setup::{Setup, bad_argument};
use super::subject::Run;
use crate::autograd::{DynTensor, Outputs};
use crate::cpu::Generator;
use crate::dtype::{DType, round_to};
use crate::error::Result;

/// The direction in which an input is moved.
pub(super) struct Direction {
    /// Which element, row-major; `None` of all at once.
    pub(super) element: Option<usize>,
    /// How far each element is moved by a step of 1; of a single element alone its own entry counts.
    pub(super) scales: Vec<f64>,
}

impl Direction {
    /// The derivative in this direction, of which a backward gave the gradient.
    pub(super) fn derivative(&self, gradient: &[f64]) -> f64 {
        match self.element {
            Some(element) => gradient[element],
            None => self.scales.iter().zip(gradient).map(|(scale, gradient)| scale * gradient).sum(),
        }
    }
}

/// A power of two, so that steps are exact: relative where values are larger than 1.
fn scale_of(value: f64) -> f64 {
    if value.abs() > 1.0 && value.is_finite() { 2.0_f64.powf(value.abs().log2().ceil()) } else { 1.0 }
}

/// A power of two: relative for small values too, but for the smallest.
fn fine_scale_of(value: f64) -> f64 {
    if value.abs() < 1.0 { 2.0_f64.powf(value.abs().max(0.001).log2().ceil()) } else { scale_of(value) }
}

/// One checked input, about to be moved.
pub(super) struct Mover<'a> {
    setup: &'a Setup<'a>,
    readings: &'a Readings,
    position: usize,
    dtype: DType,
    values: Vec<f64>,
    middle: Evaluation,
    /// The noise that was measured, for each reading.
    scatter: Vec<f64>,
    grain: Precision,
}

impl<'a> Mover<'a> {
    pub(super) fn new(
        setup: &'a Setup<'a>,
        readings: &'a Readings,
        position: usize,
        outputs: &[DynTensor],
        generator: &mut Generator,
    ) -> Result<Self> {
        let data = setup.data(position)?;
        // What stands for the subject computes in f64.
        let dtype = if setup.options.reference.is_some() { DType::F64 } else { data.dtype() };
        let compared = readings.outputs.iter().map(|&output| outputs[output].dtype());
        let grain = match setup.options.reference {
            Some(_) => precision(DType::F64),
            None => coarsest(compared.chain(readings.inner.iter().copied()).chain([dtype])),
        };
        let values = data.to_f64_vec()?;
        let nothing = Evaluation { offset: 0.0, values: Vec::new(), noise: Vec::new() };
        let scatter = Vec::new();
        let mut mover = Self { setup, readings, position, dtype, values, middle: nothing, scatter, grain };
        mover.scatter = mover.measure_scatter(generator)?;
        mover.middle = mover.evaluate(&mover.values)?;
        Ok(mover)
    }

    /// Every element by itself, or a few random directions.
    pub(super) fn directions(&self, generator: &mut Generator) -> Result<Vec<Direction>> {
        let scales: Vec<f64> = self.values.iter().map(|&value| scale_of(value)).collect();
        if !self.setup.options.fast {
            let only = |element: usize| Direction { element: Some(element), scales: vec![scales[element]] };
            return Ok((0..scales.len()).map(only).collect());
        }
        let signed =
            |signs: Vec<f64>| signs.iter().zip(&scales).map(|(sign, scale)| sign.signum() * scale).collect();
        (0..COMBINATIONS)
            .map(|_| full_numbers(scales.len(), DType::F64, true, generator).map(signed))
            .map(|scales| Ok(Direction { element: None, scales: scales? }))
            .collect()
    }

    /// The derivative of every reading in a direction.
    pub(super) fn slopes(&self, direction: &Direction, rtol: f64) -> Result<Vec<Slope>> {
        // Below this the step is no longer a step in the input's dtype.
        let size = direction.element.map_or(1.0, |element| self.values[element].abs());
        let rounding = precision(self.dtype);
        let smallest = (4.0 * rounding.unit * size).max(4.0 * rounding.tiny);
        let scale = direction.element.map_or(1.0, |_| direction.scales[0]);
        let largest = self.setup.options.step.unwrap_or(self.grain.step) * scale;
        let steps = (0..40).map(|nth| largest / 2.0_f64.powi(nth)).take_while(|&step| step >= smallest);
        let near =
            self.grain.near * direction.element.map_or(1.0, |element| fine_scale_of(self.values[element]));
        slopes(&self.middle, near, steps, 0.1 * rtol, &mut |step| {
            let (offset, values) = self.moved(direction, step);
            if offset * step <= 0.0 {
                return Ok(None);
            }
            let mut evaluation = self.evaluate(&values)?;
            evaluation.offset = offset;
            Ok(Some(evaluation))
        })
    }

    /// The input moved by a step, and how long the step became by rounding to the input's dtype.
    fn moved(&self, direction: &Direction, step: f64) -> (f64, Vec<f64>) {
        let mut values = self.values.clone();
        if let Some(element) = direction.element {
            let before = values[element];
            values[element] = round_to(self.dtype, before + step);
            return (values[element] - before, values);
        }
        for (value, scale) in values.iter_mut().zip(&direction.scales) {
            *value = round_to(self.dtype, *value + step * scale);
        }
        (step, values)
    }

    /// The readings with other values of this input.
    fn evaluate(&self, values: &[f64]) -> Result<Evaluation> {
        let data = self.setup.data(self.position)?;
        let moved = DynTensor::from_slice(values, data.shape())?.cast(self.dtype)?;
        let mut given: Vec<Option<DynTensor>> =
            self.setup.inputs.iter().map(|input| input.data.clone()).collect();
        given[self.position] = Some(moved);
        let read = match &self.setup.options.reference {
            None => {
                let outputs =
                    (self.setup.subject.run)(&given.iter().map(Option::as_ref).collect::<Vec<_>>())?;
                self.readings.read(&outputs, |reading| reading.output)
            }
            Some(reference) => {
                let outputs = self.refer(reference, given)?;
                self.readings.read(&outputs, |reading| reading.rank)
            }
        };
        read.map(|read| self.with_scatter(read))
    }

    /// What stands for the outputs, in f64.
    fn refer(&self, reference: &Run<'_>, given: Vec<Option<DynTensor>>) -> Result<Outputs> {
        let widened = |input: Option<DynTensor>| match input {
            Some(input) if input.dtype().is_float() => input.cast(DType::F64).map(Some),
            other => Ok(other),
        };
        let given = given.into_iter().map(widened).collect::<Result<Vec<_>>>()?;
        let outputs = reference(&given.iter().map(Option::as_ref).collect::<Vec<_>>())?;
        let (got, expected) = (outputs.len(), self.readings.outputs.len());
        if got == expected {
            return Ok(outputs);
        }
        let problem = "the function given to `against`";
        Err(bad_argument(format!(
            "{problem} returned {got} outputs, expected {expected}: one for each differentiable one"
        )))
    }

    /// The measured noise counts where it is clearly more than that of one rounding.
    fn with_scatter(&self, mut evaluation: Evaluation) -> Evaluation {
        for (noise, &scatter) in evaluation.noise.iter_mut().zip(&self.scatter) {
            if scatter > 2.0 * *noise {
                *noise = scatter;
            }
        }
        evaluation
    }

    /// The noise of every reading, measured along a random direction.
    fn measure_scatter(&self, generator: &mut Generator) -> Result<Vec<f64>> {
        let scales = full_numbers(self.values.len(), DType::F64, true, generator)?;
        let scales = scales
            .iter()
            .zip(&self.values)
            .map(|(sign, &value)| sign.signum() * fine_scale_of(value))
            .collect();
        let direction = Direction { element: None, scales };
        let middle = POINTS as f64 / 2.0 - 0.5;
        let evaluations = (0..POINTS)
            .map(|nth| self.evaluate(&self.moved(&direction, (nth as f64 - middle) * self.grain.probe).1))
            .collect::<Result<Vec<_>>>()?;
        Ok(scatter(&evaluations))
    }
}
