//! A Function as a node of libtorch's graph: its forward when it is applied, its backward when libtorch's engine comes to it.

use std::sync::{Mutex, PoisonError};

use gradpact::contract::GradContract;
use gradpact::error::{GradientMismatch, GradientSender, Phase, Place, Side};
use gradpact::function::{Function, GivenInputs, Graph, host};
use gradpact::{Context, DynTensor, Error, GradDType, Gradients, Inputs, List, Outputs, Policy, Result};
use smallvec::SmallVec;
use tch::Tensor;

use crate::array::{Array, Torch, shape_of};
use crate::ffi::{self, Call, Wrong};

/// Runs `function`, and records one node if libtorch records and an input requires a gradient.
pub(crate) fn apply(
    function: Box<dyn Function<Torch>>,
    inputs: &GivenInputs<'_, Torch>,
) -> Result<Outputs<Torch>> {
    let tensors: SmallVec<[Option<&Tensor>; 4]> =
        inputs.iter().map(|input| input.map(|input| input.array().tensor())).collect();
    let (requires_grad, recording) = ffi::requires_grad(tensors.iter().copied())?;
    let is_tracked = |position: usize| requires_grad.get(position).is_some_and(|&required| required != 0);
    let grad_dtype = |position: usize| {
        let tensor = tensors[position].filter(|_| is_tracked(position))?;
        ffi::grad_dtype(tensor).ok().flatten()
    };
    let forward = {
        let _unrecorded = tch::no_grad_guard();
        host::forward(&*function, inputs, |position| recording && is_tracked(position), grad_dtype)?
    };
    refuse_integers(function.name(), &forward)?;
    if !recording || !(0..inputs.len()).any(is_tracked) {
        return unrecorded(forward.outputs);
    }
    let host::Forward { outputs, contracts, saved, kept } = forward;
    let materialize = kept.materializes_grads();
    let declared = contracts.clone();
    let recorded = Recorded { function, kept, inputs: inputs.len(), contracts };
    let attached = ffi::record(
        recorded,
        &tensors,
        outputs.iter().map(|output| output.array().tensor()),
        &declared,
        saved.iter().map(|tensor| tensor.as_ref().map(|tensor| tensor.array().tensor())),
        materialize,
    )?;
    attached.into_iter().map(output).collect()
}

/// libtorch attaches no integer tensor to a graph, so a gradient that was declared for one would never come.
fn refuse_integers(function: &'static str, forward: &host::Forward<Torch>) -> Result<()> {
    let mut outputs = forward.outputs.iter().zip(&*forward.contracts).enumerate();
    let refused = outputs.find(|(_, (output, contract))| contract.is_some() && !output.dtype().is_float());
    let Some((position, (output, _))) = refused else { return Ok(()) };
    Err(Error::Argument {
        operation: function,
        problem: format!(
            "output {position} is {}: libtorch gives no integer tensor a gradient, also not a declared one; return it in \
             a floating dtype, or declare `grad = none`",
            output.dtype()
        ),
    })
}

/// Outputs of a call that is not recorded. A forward may return an input, which then keeps its own graph.
fn unrecorded(outputs: Outputs<Torch>) -> Result<Outputs<Torch>> {
    let detached = |output: DynTensor<Torch>| {
        let tensor = output.array().tensor();
        if tensor.requires_grad() { self::output(tensor.detach()) } else { Ok(output) }
    };
    outputs.into_iter().map(detached).collect()
}

pub(crate) fn output(tensor: Tensor) -> Result<DynTensor<Torch>> {
    Array::new("apply", tensor).map(DynTensor::from_array)
}

/// What a node keeps: the Function, and what its forward left.
pub(crate) struct Recorded {
    function: Box<dyn Function<Torch>>,
    kept: host::Kept,
    inputs: usize,
    contracts: List<Option<GradContract>>,
}

impl Recorded {
    /// The Function's name.
    pub(crate) fn name(&self) -> &'static str {
        self.function.name()
    }

    /// Runs the backward. The gradients that come have been converted by libtorch; those that go are checked here, since libtorch
    /// would sum a larger shape and convert an integer without a word.
    pub(crate) fn backward(
        &self,
        call: &Call<'_>,
        grads: Vec<Option<Tensor>>,
    ) -> Result<Vec<Option<Tensor>>> {
        let received = grads.into_iter().enumerate();
        let received: Gradients<Torch> = received
            .map(|(position, grad)| grad.map(|grad| self.received(position, grad)).transpose())
            .collect::<Result<_>>()?;
        let needed = call.needs_input_grad(self.inputs)?;
        let needs = |position: usize| needed.get(position).is_some_and(|&needed| needed != 0);
        let saved = self.inside(call.saved().and_then(arrays))?;
        let returned = if self.kept.is_once_differentiable() && ffi::is_grad_enabled() {
            self.backward_once(needs, saved, received)?
        } else {
            host::backward(&*self.function, &self.kept, self.inputs, needs, saved, received)?
        };
        let returned = returned.into_iter().enumerate();
        returned
            .map(|(position, grad)| match grad {
                Some(grad) if needs(position) => self.returned(call, position, grad).map(Some),
                _ => Ok(None),
            })
            .collect()
    }

    /// A gradient of an output, as backward takes it.
    fn received(&self, position: usize, grad: Tensor) -> Result<DynTensor<Torch>> {
        let grad = self.inside(Array::new("backward", grad).map(DynTensor::from_array))?;
        let contract = self.contracts.get(position).copied().flatten();
        let expected = contract.and_then(|contract| contract.grad_dtype.dtype());
        match expected {
            // Under the default policy libtorch has converted it.
            Some(expected) if expected != grad.dtype() => Err(Error::Gradient(Box::new(GradientMismatch {
                sender: GradientSender::Host,
                receiver: self.place(Side::Output, position).to_string(),
                shape: None,
                dtype: Some((expected, grad.dtype())),
            }))),
            _ => Ok(grad),
        }
    }

    /// A gradient for an input, as libtorch takes it.
    fn returned(&self, call: &Call<'_>, position: usize, grad: DynTensor<Torch>) -> Result<Tensor> {
        let sender = || GradientSender::Backward(self.place(Side::Input, position));
        if !grad.dtype().is_float() {
            return Err(Error::GradientNotFloat { sender: Box::new(sender()), got: grad.dtype() });
        }
        let grad = grad.into_array().into_tensor();
        match call.check(position, &grad)? {
            None => Ok(grad),
            Some(Wrong::Shape) => {
                let expected = call.expected(position)?;
                Err(Error::Gradient(Box::new(GradientMismatch {
                    sender: sender(),
                    receiver: expected.receiver,
                    shape: Some((expected.shape, shape_of(&grad))),
                    dtype: None,
                })))
            }
            Some(Wrong::Device) => {
                let expected = call.expected(position)?.device;
                let problem = format!("{} is on {:?}, expected on {expected}", sender(), grad.device());
                Err(Error::Argument { operation: "backward", problem })
            }
        }
    }

    /// The backward of a Function that is differentiable once, in a call that is recorded: what it returns leads to an error.
    fn backward_once(
        &self,
        needs: impl Fn(usize) -> bool,
        saved: Option<List<Option<DynTensor<Torch>>>>,
        received: Gradients<Torch>,
    ) -> Result<Gradients<Torch>> {
        let used = received.iter().flatten().chain(saved.iter().flat_map(|saved| saved.iter().flatten()));
        let used: Vec<DynTensor<Torch>> = used.cloned().collect();
        let returned = {
            let _unrecorded = tch::no_grad_guard();
            host::backward(&*self.function, &self.kept, self.inputs, needs, saved, received)?
        };
        let results: Vec<DynTensor<Torch>> = returned.iter().flatten().cloned().collect();
        let barrier = Barrier { function: self.name(), results: Mutex::new(results.into()) };
        let inputs: Vec<_> = used.iter().map(Some).collect();
        let mut results = Torch::record_function(barrier, &inputs)?.into_iter();
        Ok(returned.into_iter().map(|grad| grad.and_then(|_| results.next())).collect())
    }

    fn place(&self, side: Side, position: usize) -> Place {
        Place { function: self.name().to_owned(), side, position }
    }

    fn inside<T>(&self, result: Result<T>) -> Result<T> {
        let (function, phase) = (self.name(), Phase::Backward);
        result.map_err(|source| Error::InFunction {
            function: function.to_owned(),
            phase,
            source: Box::new(source),
        })
    }
}

/// Saved tensors, as the context of a backward takes them.
fn arrays(saved: Option<Vec<Option<Tensor>>>) -> Result<Option<List<Option<DynTensor<Torch>>>>> {
    let array = |tensor: Option<Tensor>| {
        tensor.map(|tensor| Array::new("saved_tensors", tensor).map(DynTensor::from_array)).transpose()
    };
    saved.map(|saved| saved.into_iter().map(array).collect()).transpose()
}

/// Stands behind the results of a backward that cannot be differentiated, and says so when a gradient comes.
struct Barrier {
    function: &'static str,
    // Taken by forward: what a node keeps must not lead to its own outputs.
    results: Mutex<Outputs<Torch>>,
}

impl Function<Torch> for Barrier {
    fn name(&self) -> &'static str {
        self.function
    }

    fn forward(&self, ctx: &mut Context<Torch>, _: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        let results = core::mem::take(&mut *self.results.lock().unwrap_or_else(PoisonError::into_inner));
        let own = results.iter().map(|result| GradDType::Exactly(result.dtype()));
        ctx.set_output_grad_dtype(&own.collect::<Vec<_>>())?;
        ctx.set_policy(Policy::Cast);
        Ok(results)
    }

    fn backward(&self, _: &Context<Torch>, _: Gradients<Torch>) -> Result<Gradients<Torch>> {
        Err(Error::DifferentiableOnce(self.function.to_owned()))
    }
}
