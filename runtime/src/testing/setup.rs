//! What a check works on: subject, options, inputs, and which of them are differentiated.

use super::inputs::GivenInput;
use super::options::Gradcheck;
use super::subject::Subject;
use crate::autograd::{BackwardOptions, DynTensor, Outputs, grad};
use crate::contract::GradDType;
use crate::dtype::DType;
use crate::error::{Error, Place, Result};

/// One input.
pub(super) struct Input {
    /// Its values; `None` if it is left out.
    pub(super) data: Option<DynTensor>,
    /// In which dtype its gradient is kept; `None` if it has none.
    pub(super) grad_dtype: Option<GradDType>,
}

impl Input {
    /// A leaf with its values and gradient dtype.
    pub(super) fn leaf(&self, data: &DynTensor) -> Result<DynTensor> {
        match self.grad_dtype {
            Some(grad_dtype) if grad_dtype != GradDType::Exactly(data.dtype()) => {
                data.requiring_grad_in(grad_dtype)
            }
            _ => data.requiring_grad(),
        }
    }
}

/// Everything a check needs to know.
pub(super) struct Setup<'a> {
    pub(super) options: &'a Gradcheck<'a>,
    pub(super) subject: &'a Subject<'a>,
    pub(super) inputs: Vec<Input>,
    /// Positions of the inputs whose gradients are checked.
    pub(super) checked: Vec<usize>,
    /// Dtypes that gradients pass through beside those at both ends.
    pub(super) inner: Vec<DType>,
    /// Whether the subject is itself a gradient.
    pub(super) is_second: bool,
}

/// A tensor, perhaps changed in layout, from another.
pub(super) type Transform = fn(&DynTensor) -> Result<DynTensor>;

/// The error of a check that makes no sense.
pub(super) fn bad_argument(problem: impl Into<String>) -> Error {
    Error::Argument { operation: "gradcheck", problem: problem.into() }
}

impl<'a> Setup<'a> {
    pub(super) fn new(
        options: &'a Gradcheck<'a>,
        subject: &'a Subject<'a>,
        given: Vec<GivenInput>,
    ) -> Result<Self> {
        let inputs: Vec<Input> =
            given.into_iter().map(|i| Input { data: i.tensor, grad_dtype: i.grad_dtype }).collect();
        let differentiable = |&position: &usize| {
            let input = inputs.get(position);
            input.is_some_and(|input| {
                input.grad_dtype.is_some() && input.data.as_ref().is_some_and(|data| data.dtype().is_float())
            })
        };
        let checked: Vec<usize> = match &options.only {
            None => (0..inputs.len()).filter(differentiable).collect(),
            Some(only) => {
                if let Some(position) = only.iter().find(|position| !differentiable(position)) {
                    return Err(bad_argument(format!(
                        "input {position} of `{}` has no gradient",
                        subject.name
                    )));
                }
                let mut only = only.clone();
                only.sort_unstable();
                only.dedup();
                only
            }
        };
        if checked.is_empty() {
            return Err(bad_argument(format!(
                "no input of `{}` has a gradient: nothing to check",
                subject.name
            )));
        }
        Ok(Self { options, subject, inputs, checked, inner: Vec::new(), is_second: false })
    }

    /// The values of a checked input.
    pub(super) fn data(&self, position: usize) -> Result<&DynTensor> {
        let absent = || Error::AbsentInput(Box::new(self.input_place(position)));
        self.inputs.get(position).and_then(|input| input.data.as_ref()).ok_or_else(absent)
    }

    /// Runs the subject on the inputs, with those at `tracked` as leaves.
    ///
    /// Gives the outputs and the leaves.
    pub(super) fn forward(
        &self,
        tracked: &[usize],
        transform: Transform,
    ) -> Result<(Outputs, Vec<DynTensor>)> {
        let mut leaves = Vec::new();
        for &position in tracked {
            leaves.push(self.inputs[position].leaf(&transform(self.data(position)?)?)?);
        }
        let mut inputs: Vec<Option<&DynTensor>> =
            self.inputs.iter().map(|input| input.data.as_ref()).collect();
        for (&position, leaf) in tracked.iter().zip(&leaves) {
            inputs[position] = Some(leaf);
        }
        let outputs = (self.subject.run)(&inputs)?;
        Ok((outputs, leaves))
    }

    /// The gradients of the leaves, where `seeds` has one for each output or `None`.
    pub(super) fn backward(
        &self,
        outputs: &[DynTensor],
        leaves: &[DynTensor],
        seeds: &[Option<DynTensor>],
    ) -> Result<Vec<Option<DynTensor>>> {
        let roots: Vec<_> = outputs
            .iter()
            .zip(seeds)
            .filter(|(output, seed)| output.requires_grad() && seed.is_some())
            .map(|(output, seed)| (output, seed.as_ref()))
            .collect();
        if roots.is_empty() {
            return Ok(vec![None; leaves.len()]);
        }
        let options = BackwardOptions::new().retain_graph().allow_unused();
        grad(&roots, &leaves.iter().collect::<Vec<_>>(), options)
    }

    pub(super) fn input_place(&self, position: usize) -> Place {
        Place::input(&self.subject.name, position)
    }

    pub(super) fn output_place(&self, position: usize) -> Place {
        Place::output(&self.subject.name, position)
    }
}

/// The element at `index`, counted row-major, as an index of each axis.
pub(super) fn element_of(tensor: &DynTensor, mut index: usize) -> Vec<usize> {
    let mut element: Vec<usize> = Vec::with_capacity(tensor.shape().len());
    for &extent in tensor.shape().iter().rev() {
        element.push(index % extent.max(1));
        index /= extent.max(1);
    }
    element.reverse();
    element
}

/// The largest magnitude; what is not a number does not count.
pub(super) fn max_abs(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(f64::abs).fold(0.0, f64::max)
}

/// A derivative of this output by this input that is so small, beside what is usual for values of their size, that it
/// is zero but for the rounding in backward.
pub(super) fn negligible(output: &DynTensor, input: &DynTensor) -> Result<f64> {
    let usual = max_abs(output.to_f64_vec()?) / max_abs(input.to_f64_vec()?).max(1.0);
    Ok(2.0_f64.powi(-21) * usual)
}
