//! Gradients by the engine: one backward for each reading. Also whether a gradient keeps its precision on the way.

use super::audit::{audit, input_slots, output_slots};
use super::precision::{coarsest, precision};
use super::readings::{Reading, Readings, seed_dtype};
use super::setup::{Setup, max_abs, negligible};
use super::violation::Violation;
use crate::autograd::DynTensor;
use crate::contract::GradDType;
use crate::dtype::DType;
use crate::error::Result;

/// The gradient of one reading with respect to each checked input.
pub(super) type Row = Vec<Vec<f64>>;

/// What came of the backwards.
pub(super) struct Analytic {
    /// A row for each reading.
    pub(super) rows: Vec<Row>,
    pub(super) violations: Vec<Violation>,
}

/// Runs a backward for each reading.
pub(super) fn analytic(
    setup: &Setup<'_>,
    readings: &Readings,
    outputs: &[DynTensor],
    leaves: &[DynTensor],
) -> Result<Analytic> {
    let (mut rows, mut violations) = (Vec::new(), Vec::new());
    for reading in &readings.list {
        let row = row(setup, reading, outputs, leaves, 1.0)?;
        violations.extend(calls_of(setup, reading, outputs));
        rows.push(row);
    }
    for &output in &readings.outputs {
        let of_output = readings.list.iter().zip(&rows).filter(|(reading, _)| reading.output == output);
        let largest = of_output.max_by(|(_, a), (_, b)| f64::total_cmp(&size(a), &size(b)));
        if let Some((reading, row)) = largest.filter(|_| outputs[output].requires_grad()) {
            violations.extend(lost_precision(setup, reading, outputs, leaves, row)?);
        }
    }
    Ok(Analytic { rows, violations })
}

fn size(row: &Row) -> f64 {
    max_abs(row.iter().flatten().copied())
}

/// The gradients of a reading, from a seed that is `scale` times as large as the reading's weights.
fn row(
    setup: &Setup<'_>,
    reading: &Reading,
    outputs: &[DynTensor],
    leaves: &[DynTensor],
    scale: f64,
) -> Result<Row> {
    let output = &outputs[reading.output];
    let mut seeds = vec![None; outputs.len()];
    if output.requires_grad() {
        seeds[reading.output] = Some(reading.seed(output, scale)?);
    }
    let grads = setup.backward(outputs, leaves, &seeds)?;
    let to_values = |(grad, leaf): (Option<DynTensor>, &DynTensor)| match grad {
        Some(grad) => Ok(grad.to_f64_vec()?.iter().map(|value| value / reading.factor()).collect()),
        None => Ok(vec![0.0; leaf.shape().element_count()]),
    };
    grads.into_iter().zip(leaves).map(to_values).collect()
}

/// What the backward of a reading did against the contract.
fn calls_of(setup: &Setup<'_>, reading: &Reading, outputs: &[DynTensor]) -> Vec<Violation> {
    let Some(log) = &setup.subject.log else { return Vec::new() };
    let mut sent = vec![None; outputs.len()];
    sent[reading.output] = Some(seed_dtype(&outputs[reading.output]));
    audit(&log.take(), &input_slots(setup), &output_slots(setup, outputs, &sent), false)
}

/// Sends a gradient that is faint, of the other sign, and uses every bit of its dtype, and compares with the unscaled one:
/// backward is linear, so each result must be scaled alike, as exactly as the gradient dtypes on both ends allow.
///
/// A gradient that is held in a narrower dtype in between, even inside a backward, shows here: as rounding, or as zero. So
/// does a backward that takes it for positive, which all seeds of single elements are.
fn lost_precision(
    setup: &Setup<'_>,
    reading: &Reading,
    outputs: &[DynTensor],
    leaves: &[DynTensor],
    unscaled: &Row,
) -> Result<Option<Violation>> {
    let output = &outputs[reading.output];
    let ends = |leaf: &DynTensor| [promised(setup, output), promised(setup, leaf)];
    let faint = max_abs(leaves.iter().map(|leaf| coarsest(ends(leaf)).faint));
    // A factor that leaves no bit of the reading's weights as it was.
    let scale = -faint * core::f64::consts::SQRT_2;
    let scaled = row(setup, reading, outputs, leaves, scale)?;
    let _ = setup.subject.log.as_ref().map(|log| log.take());
    for (nth, leaf) in leaves.iter().enumerate() {
        let precise = coarsest(ends(leaf));
        let largest = max_abs(unscaled[nth].iter().copied());
        if largest <= negligible(output, leaf)? {
            continue;
        }
        // Some roundings in a row, and sums of which a part cancels; in 8 bits less than what a zero would be wrong by.
        let tolerance = (64.0 * precise.unit).min(0.875) * largest;
        let pairs = scaled[nth].iter().zip(&unscaled[nth]);
        let wrong = |&(&got, &expected): &(&f64, &f64)| (got / scale - expected).abs() > tolerance;
        if let Some((&got, &expected)) = pairs.into_iter().find(wrong) {
            return Ok(Some(Violation::Precision {
                output: reading.output,
                input: setup.checked[nth],
                dtype: coarsest_dtype(ends(leaf)),
                scale,
                expected: expected * scale,
                got,
            }));
        }
    }
    Ok(None)
}

/// The dtype whose precision the gradient of a tensor should have: the declared one; but not a narrower one than that of
/// the values, unless that was allowed.
fn promised(setup: &Setup<'_>, tensor: &DynTensor) -> DType {
    let declared = tensor.grad_dtype().and_then(GradDType::dtype);
    match declared {
        Some(declared) if setup.options.narrowing || !tensor.dtype().is_float() => declared,
        Some(declared) if tensor.dtype().fits_in(declared) => declared,
        // Any, or a narrower one.
        _ if tensor.dtype().is_float() => tensor.dtype(),
        _ => DType::F32,
    }
}

fn coarsest_dtype(dtypes: [DType; 2]) -> DType {
    let [a, b] = dtypes;
    if precision(b).unit > precision(a).unit { b } else { a }
}
