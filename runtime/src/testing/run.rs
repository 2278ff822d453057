//! One check from beginning to end.

use super::analytic::{Analytic, analytic};
use super::audit::declarations;
use super::behaviour::{Behaviour, dense};
use super::differences::Slope;
use super::numeric::Mover;
use super::precision::{Precision, coarsest};
use super::readings::Readings;
use super::report::{Accuracy, Derivative, GradcheckReport, Pair};
use super::setup::{Setup, bad_argument, element_of, negligible};
use crate::autograd::DynTensor;
use crate::contract::GradDType;
use crate::cpu::Generator;
use crate::dtype::DType;
use crate::error::Result;

/// Checks everything that the options ask for.
pub(super) fn run(setup: &Setup<'_>) -> Result<GradcheckReport> {
    let mut generator = Generator::new(setup.options.seed);
    let mut report = GradcheckReport::new(&setup.subject.name, setup.is_second);
    let (outputs, leaves) = setup.forward(&setup.checked, dense)?;
    let readings = Readings::choose(setup, &outputs, &mut generator)?;
    refuse_integers(setup, &readings, &outputs)?;
    if !setup.is_second {
        report.add(declarations(setup, &outputs), setup.options);
    }
    let mut behaviour = Behaviour::observe(setup, &outputs, &leaves, &mut generator)?;
    if behaviour.has_run() {
        behaviour.repeat()?;
        if !setup.is_second && behaviour.is_deterministic() {
            behaviour.undefined()?;
            behaviour.alone()?;
            behaviour.strided()?;
        }
    }
    let (has_run, is_deterministic) = (behaviour.has_run(), behaviour.is_deterministic());
    report.add(behaviour.violations, setup.options);
    if !has_run {
        return Ok(report);
    }
    let Analytic { rows, violations } = analytic(setup, &readings, &outputs, &leaves)?;
    report.add(violations, setup.options);
    if setup.options.values && is_deterministic {
        for nth in 0..setup.checked.len() {
            let rows: Vec<&Vec<f64>> = rows.iter().map(|row| &row[nth]).collect();
            compare_input(setup, &readings, &outputs, nth, &rows, &mut generator, &mut report)?;
        }
    }
    report.sort();
    Ok(report)
}

/// Finite differences of rounded integers mean nothing.
fn refuse_integers(setup: &Setup<'_>, readings: &Readings, outputs: &[DynTensor]) -> Result<()> {
    if !setup.options.values || setup.options.reference.is_some() {
        return Ok(());
    }
    match readings.outputs.iter().find(|&&position| !outputs[position].dtype().is_float()) {
        None => Ok(()),
        Some(&position) => Err(bad_argument(format!(
            "output {position} of `{}` is {}, of which finite differences mean nothing: give `against` the smooth \
             function that it stands for, or use `contract_only`",
            setup.subject.name,
            outputs[position].dtype()
        ))),
    }
}

/// Compares the derivatives by one input.
fn compare_input(
    setup: &Setup<'_>,
    readings: &Readings,
    outputs: &[DynTensor],
    nth: usize,
    rows: &[&Vec<f64>],
    generator: &mut Generator,
    report: &mut GradcheckReport,
) -> Result<()> {
    let position = setup.checked[nth];
    let data = setup.data(position)?;
    let mut derivatives: Vec<Vec<Derivative>> = readings.outputs.iter().map(|_| Vec::new()).collect();
    let mover = Mover::new(setup, readings, position, outputs, generator)?;
    for direction in mover.directions(generator)? {
        let slopes: Vec<Slope> =
            mover.slopes(&direction, precision_of(setup, readings, outputs, position).rtol)?;
        for ((reading, row), slope) in readings.list.iter().zip(rows).zip(slopes) {
            derivatives[reading.rank].push(Derivative {
                output_element: reading.element.map(|element| element_of(&outputs[reading.output], element)),
                input_element: direction.element.map(|element| element_of(data, element)),
                analytic: direction.derivative(row),
                numeric: slope.value,
                uncertainty: slope.uncertainty,
            });
        }
    }
    for (&output, derivatives) in readings.outputs.iter().zip(derivatives) {
        let rtol = precision_of(setup, readings, &outputs[output..=output], position).rtol;
        let accuracy =
            Accuracy::new((output, outputs[output].dtype()), (position, data.dtype()), &derivatives);
        let pair = Pair {
            rtol: setup.options.rtol.unwrap_or(rtol),
            atol: setup.options.atol.unwrap_or(0.125 * rtol * accuracy.largest),
            negligible: negligible(&outputs[output], data)?,
            accuracy,
        };
        report.add_pair(pair, derivatives, setup.options.unresolved);
    }
    Ok(())
}

/// The precision of the coarsest dtype that values or gradients pass through between these outputs and an input.
fn precision_of(setup: &Setup<'_>, readings: &Readings, outputs: &[DynTensor], position: usize) -> Precision {
    let stored = outputs.iter().map(DynTensor::dtype).filter(|dtype| dtype.is_float());
    let inputs = setup.inputs.iter().filter_map(|input| input.data.as_ref()).map(DynTensor::dtype);
    let mut dtypes: Vec<DType> =
        stored.chain(inputs.filter(|dtype| dtype.is_float())).chain(readings.inner.iter().copied()).collect();
    if setup.options.narrowing {
        dtypes.extend(setup.inputs[position].grad_dtype.and_then(GradDType::dtype));
        dtypes.extend(outputs.iter().filter_map(DynTensor::grad_dtype).filter_map(GradDType::dtype));
    }
    coarsest(dtypes)
}
