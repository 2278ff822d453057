//! The Function of a custom step: does what the step says, and writes down what its backward was given.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use gradpact::{
    Context, DType, DynTensor, Error, Function, Gradients, Inputs, Outputs, Result, apply, autocast_dtype,
};

use super::{Lab, Shared, seen};
use crate::format::kept;
use crate::log::{Entry, Label, Seen, Who};
use crate::program::{Custom, Factor, Formula};

/// The Function of a custom step, or inside the backward of one.
pub(super) struct Recorder {
    pub(super) label: Label,
    pub(super) custom: Custom,
    /// In which dtype the region keeps what it saves, if it does not keep it as it is.
    pub(super) kept_in: Option<DType>,
    pub(super) shared: Arc<Shared>,
}

/// What forward notes for its backward to compare with.
struct Noted {
    /// The region's compute dtype.
    autocast: Option<DType>,
    saved: Vec<Seen>,
}

impl Recorder {
    /// Whether what was saved comes back as it was, and the region is the same.
    fn check<E: Lab>(&self, ctx: &Context<E>) -> Result<()> {
        let Some(noted) = ctx.stored::<Noted>() else { return Err(Error::custom("nothing stored")) };
        if noted.autocast != autocast_dtype() {
            let regions = format!("forward in {:?}, backward in {:?}", noted.autocast, autocast_dtype());
            return Err(Error::custom(regions));
        }
        if !self.custom.saves() {
            return Ok(());
        }
        let saved = ctx.saved_tensors()?.iter().map(|tensor| seen(Some(tensor)));
        let saved = saved.collect::<Result<Vec<_>>>()?;
        // By their text, so that a NaN is like itself.
        let same = format!("{saved:?}") == format!("{:?}", noted.saved);
        let problem = || Error::custom(format!("saved {:?}, got back {saved:?}", noted.saved));
        if same { Ok(()) } else { Err(problem()) }
    }

    /// Whether a forward that is run again runs in the compute dtype that it first ran in.
    fn check_region(&self) -> Result<()> {
        let now = autocast_dtype();
        let mut computed_in = self.shared.computed_in.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *computed_in.entry(self.label.step).or_insert(now);
        let problem = || Error::custom(format!("first run in {first:?}, run again in {now:?}"));
        if self.label.inside.is_some() || first == now { Ok(()) } else { Err(problem()) }
    }

    /// A saved tensor as backward will see it.
    fn noted<E: Lab>(&self, tensor: &DynTensor<E>) -> Result<Seen> {
        let dtype = tensor.dtype();
        let values = E::values(tensor)?.into_iter().map(|value| kept(self.kept_in, dtype, value)).collect();
        Ok(Some((dtype, values)))
    }

    /// The gradient of an input by recorded operations.
    fn recorded<E: Lab>(
        &self,
        ctx: &Context<E>,
        factor: Factor,
        position: usize,
        grads: &Gradients<E>,
    ) -> Result<Option<DynTensor<E>>> {
        let custom = &self.custom;
        let given = |position: usize| custom.inputs[..position].iter().flatten().count();
        let (Some(dtype), Some(_)) = (custom.returns[position].dtype, custom.inputs[position]) else {
            return Ok(None);
        };
        let mut sum: Option<DynTensor<E>> = None;
        for (output, grad) in grads.iter().enumerate() {
            let Some(grad) = grad else { continue };
            let weights = vec![custom.returns[position].weights[output]; self.shared.program.length];
            let weighted = E::mul(grad, &E::tensor(grad.dtype(), &weights)?)?;
            let term = match factor {
                Factor::One => weighted,
                Factor::Input => E::mul(&weighted, ctx.saved_tensor(given(position))?)?,
                Factor::Output => E::mul(&weighted, ctx.saved_tensor(given(custom.inputs.len()) + output)?)?,
            };
            sum = Some(if let Some(sum) = sum { E::add(&sum, &term)? } else { term });
        }
        let Some(sum) = sum else { return Ok(None) };
        let Some(custom) = custom.inside_backward(position) else { return sum.cast(dtype).map(Some) };
        let pass = self.shared.passes.load(Ordering::Relaxed);
        let label = Label { step: self.label.step, inside: Some(position), pass };
        let inside = Self { label, custom, kept_in: None, shared: Arc::clone(&self.shared) };
        Ok(Some(apply(inside, &[&sum])?[0].clone()))
    }

    /// The gradient of an input as a constant.
    fn constant<E: Lab>(&self, position: usize, received: &[Seen]) -> Result<Option<DynTensor<E>>> {
        let values: Vec<_> = received.iter().map(|seen| Some(seen.as_ref()?.1.clone())).collect();
        let Some(dtype) = self.custom.returns[position].dtype else { return Ok(None) };
        let grad = self.custom.backward(position, &values, self.shared.program.length);
        grad.map(|values| E::tensor(dtype, &values)).transpose()
    }
}

impl<E: Lab> Function<E> for Recorder {
    fn name(&self) -> &'static str {
        self.label.name()
    }

    fn forward(&self, ctx: &mut Context<E>, inputs: &Inputs<'_, E>) -> Result<Outputs<E>> {
        self.check_region()?;
        let custom = &self.custom;
        let outputs = 0..custom.outputs.len();
        if custom.declares {
            let declared: Vec<_> = outputs.clone().map(|position| custom.declaration(position)).collect();
            ctx.set_output_grad_dtype(&declared)?;
        }
        let constant: Vec<_> = outputs.clone().filter(|&p| !custom.outputs[p].differentiable).collect();
        ctx.mark_non_differentiable(&constant);
        ctx.set_materialize_grads(custom.materializes);
        let values: Vec<_> = inputs.iter().map(|x| x.map(E::values).transpose()).collect::<Result<_>>()?;
        let first = inputs.iter().flatten().next();
        let output = |position: usize| match (first, &custom.outputs[position]) {
            // What is computed from constants alone is a constant itself, also where it is saved.
            (Some(first), output) if output.converts_input && first.requires_grad() => {
                first.cast(output.dtype)
            }
            (_, output) => {
                E::tensor(output.dtype, &custom.forward(position, &values, self.shared.program.length))
            }
        };
        let outputs: Vec<_> = outputs.map(output).collect::<Result<_>>()?;
        let mut saved: Vec<DynTensor<E>> = Vec::new();
        if custom.saves() {
            saved.extend(inputs.iter().flatten().chain(&outputs).cloned());
            ctx.save_for_backward(&saved[..]);
        }
        let saved = saved.iter().map(|tensor| self.noted(tensor)).collect::<Result<_>>()?;
        ctx.store(Noted { autocast: autocast_dtype(), saved });
        Ok(outputs.into())
    }

    fn backward(&self, ctx: &Context<E>, grads: Gradients<E>) -> Result<Gradients<E>> {
        self.check(ctx)?;
        let received: Vec<_> = grads.iter().map(|grad| seen(grad.as_ref())).collect::<Result<_>>()?;
        let inputs = 0..self.custom.inputs.len();
        let needs = inputs.clone().map(|position| ctx.needs_input_grad(position)).collect();
        let returned = |position: usize| match self.custom.formula {
            Formula::Values => self.constant(position, &received),
            Formula::Recorded(factor) => self.recorded(ctx, factor, position, &grads),
        };
        let mut returned: Gradients<E> = inputs.map(returned).collect::<Result<_>>()?;
        if self.custom.returns_too_many {
            returned.push(None);
        }
        self.shared.write(Entry { who: Who::Function(self.label), saw: received, needs });
        Ok(returned)
    }
}
