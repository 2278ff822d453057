//! What is read off the outputs: each element, or in a fast check random combinations of them. A reading is a number that
//! has a derivative on both sides: by finite differences, and by a backward from its weights as the seed.

use std::collections::{BTreeSet, HashSet};

use super::differences::Evaluation;
use super::precision::rounding_error;
use super::setup::{Setup, bad_argument};

use crate::autograd::{DynTensor, Edge, InputMetadata, NodeRef, Origin};
use crate::contract::GradDType;
use crate::cpu::Generator;
use crate::dtype::{DType, round_to};
use crate::engine::Cpu;
use crate::error::Result;
use crate::shape::Shape;

/// How many combinations of each output, and directions of each input, a fast check looks at.
pub(super) const COMBINATIONS: usize = 3;

/// One number that is read off the outputs.
pub(super) struct Reading {
    /// Position of the output.
    pub(super) output: usize,
    /// Which of the outputs that are compared it is.
    pub(super) rank: usize,
    /// Which element, row-major; `None` of a combination.
    pub(super) element: Option<usize>,
    /// The factor on the element; or the factors of a combination. They use every bit of the output's dtype, so that a
    /// gradient held in a narrower one shows.
    weights: Vec<f64>,
}

impl Reading {
    /// The seed whose backward gives this reading's gradients, times `scale`.
    pub(super) fn seed(&self, output: &DynTensor, scale: f64) -> Result<DynTensor> {
        let values = match self.element {
            Some(element) => {
                let mut values = vec![0.0; output.shape().element_count()];
                values[element] = self.weights[0] * scale;
                values
            }
            None => self.weights.iter().map(|weight| weight * scale).collect(),
        };
        DynTensor::from_vec(values, output.shape())?.cast(seed_dtype(output))
    }

    /// What the gradients of a seed are divided by to be those of the reading.
    pub(super) fn factor(&self) -> f64 {
        if self.element.is_some() { self.weights[0] } else { 1.0 }
    }

    /// Its value, and the rounding error that it may have.
    fn read(&self, dtype: DType, values: &[f64]) -> (f64, f64) {
        match self.element {
            Some(element) => (values[element], rounding_error(dtype, values[element])),
            None => {
                let value = self.weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
                // Of many independent errors the root of the sum of squares, three times to be on the safe side.
                let square = |(weight, value): (&f64, &f64)| (weight * rounding_error(dtype, *value)).powi(2);
                let noise = self.weights.iter().zip(values).map(square).sum::<f64>().sqrt();
                (value, 3.0 * noise)
            }
        }
    }
}

/// The dtype in which a gradient is sent to an output: the declared one; where any is taken that of the values, and at
/// least f32.
pub(super) fn seed_dtype(output: &DynTensor) -> DType {
    let own = if output.dtype().is_float() { output.dtype().promote(DType::F32) } else { DType::F32 };
    output.grad_dtype().and_then(GradDType::dtype).unwrap_or(own)
}

/// Numbers between 1 and 2 with random signs, or without, that use all bits of `dtype`.
pub(super) fn full_numbers(
    count: usize,
    dtype: DType,
    signs: bool,
    generator: &mut Generator,
) -> Result<Vec<f64>> {
    let dtype = if dtype.is_float() { dtype } else { DType::F32 };
    let mut draw = || DynTensor::rand(Shape::from([count]), DType::F64, generator)?.to_f64_vec();
    let (sizes, sides) = (draw()?, draw()?);
    let number = |(size, side): (f64, f64)| {
        let sign = if signs && side < 0.5 { -1.0 } else { 1.0 };
        sign * round_to(dtype, 1.0 + size)
    };
    Ok(sizes.into_iter().zip(sides).map(number).collect())
}

/// Everything that is read off the outputs.
pub(super) struct Readings {
    pub(super) list: Vec<Reading>,
    /// Positions of the outputs that are compared.
    pub(super) outputs: Vec<usize>,
    /// Floating dtypes that values pass through on the way from the inputs to the outputs.
    pub(super) inner: Vec<DType>,
}

/// The floating dtypes of all that the outputs were computed from, as the graph knows it.
fn inner_dtypes(outputs: &[DynTensor]) -> Vec<DType> {
    let mut stack: Vec<&NodeRef<Cpu>> = outputs.iter().filter_map(DynTensor::grad_fn).collect();
    let (mut seen, mut dtypes) = (HashSet::new(), BTreeSet::new());
    while let Some(node) = stack.pop() {
        if seen.insert(node.sequence_nr()) {
            dtypes.extend(node.inputs().iter().map(InputMetadata::dtype).filter(|dtype| dtype.is_float()));
            stack.extend(node.next_edges().iter().filter_map(Origin::edge).map(Edge::node));
        }
    }
    dtypes.into_iter().collect()
}

impl Readings {
    /// What to read: of a Function every differentiable output, of a closure every floating one too.
    pub(super) fn choose(
        setup: &Setup<'_>,
        outputs: &[DynTensor],
        generator: &mut Generator,
    ) -> Result<Self> {
        let is_compared = |output: &DynTensor| {
            output.requires_grad() || (setup.subject.log.is_none() && output.dtype().is_float())
        };
        let positions: Vec<usize> =
            (0..outputs.len()).filter(|&position| is_compared(&outputs[position])).collect();
        if positions.is_empty() {
            return Err(bad_argument(format!(
                "no output of `{}` has a gradient: nothing to check",
                setup.subject.name
            )));
        }
        let mut list = Vec::new();
        for (rank, &output) in positions.iter().enumerate() {
            let (count, dtype) = (outputs[output].shape().element_count(), outputs[output].dtype());
            if setup.options.fast {
                for _ in 0..COMBINATIONS {
                    let weights = full_numbers(count, dtype, true, generator)?;
                    list.push(Reading { output, rank, element: None, weights });
                }
            } else {
                for (element, weight) in full_numbers(count, dtype, false, generator)?.into_iter().enumerate()
                {
                    list.push(Reading { output, rank, element: Some(element), weights: vec![weight] });
                }
            }
        }
        let mut inner = inner_dtypes(outputs);
        inner.extend(&setup.inner);
        Ok(Self { list, outputs: positions, inner })
    }

    /// Reads all off these outputs, of which `find` tells the one for a reading.
    pub(super) fn read(&self, outputs: &[DynTensor], find: impl Fn(&Reading) -> usize) -> Result<Evaluation> {
        let values: Vec<Vec<f64>> = outputs.iter().map(DynTensor::to_f64_vec).collect::<Result<_>>()?;
        let read = |reading: &Reading| {
            let position = find(reading);
            let wanted = reading.element.map_or(reading.weights.len(), |element| element + 1);
            match (outputs.get(position), values.get(position)) {
                (Some(output), Some(values)) if values.len() >= wanted => {
                    Ok(reading.read(output.dtype(), values))
                }
                _ => Err(bad_argument(format!(
                    "what stands for output {} is missing, or has fewer elements than it",
                    reading.output
                ))),
            }
        };
        let (values, noise) = self.list.iter().map(read).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok(Evaluation { offset: 0.0, values, noise })
    }
}
