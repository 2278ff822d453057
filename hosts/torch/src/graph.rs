//! What the methods of typed tensors do on tensors of tch: libtorch's graph answers.

use gradpact::contract::{GradContract, Source};
use gradpact::engine::Array as _;
use gradpact::error::{GradientMismatch, GradientSender};
use gradpact::function::{Function, GivenInputs, Graph, Roots};
use gradpact::{
    BackwardOptions, Context, DType, DynTensor, Error, GradDType, Gradients, Inputs, Outputs, Policy, Result,
};
use tch::Tensor;

use crate::array::{Array, Torch, from_tch};
use crate::differentiate::{backward, grad_dtype, require_leaf, set_grad_dtype};
use crate::{ffi, node};

/// Functions on tensors of tch become nodes of libtorch's graph.
impl Graph for Torch {
    fn record_function<F: Function<Self>>(
        function: F,
        inputs: &GivenInputs<'_, Self>,
    ) -> Result<Outputs<Self>> {
        node::apply(Box::new(function), inputs)
    }

    fn run_backward(roots: &Roots<'_, Self>, options: BackwardOptions) -> Result<()> {
        let roots: Vec<(&Tensor, Option<&Tensor>)> = roots
            .iter()
            .map(|(root, seed)| (root.array().tensor(), seed.map(|seed| seed.array().tensor())))
            .collect();
        backward(&roots, options)
    }

    fn is_tracked(tensor: &DynTensor<Self>) -> bool {
        tensor.array().requires_grad()
    }

    /// libtorch knows the dtype, and not whether somebody declared it.
    fn tracked_contract(tensor: &DynTensor<Self>) -> Option<GradContract> {
        let grad_dtype = grad_dtype(tensor.array()).ok().flatten()?;
        let is_default = grad_dtype == GradDType::Exactly(tensor.dtype());
        let source = if is_default { Source::Default } else { Source::Declared };
        Some(GradContract { grad_dtype, source, policy: Policy::Cast })
    }

    fn leaf(tensor: &DynTensor<Self>, grad_dtype: Option<GradDType>) -> Result<DynTensor<Self>> {
        if !tensor.dtype().is_float() {
            let expected = "a floating-point dtype for a gradient".to_owned();
            return Err(Error::DType { operation: "requiring_grad", expected, got: tensor.dtype() });
        }
        let leaf = tensor.array().f_detach().map_err(|error| from_tch(&error))?;
        let leaf = leaf.f_set_requires_grad(true).map_err(|error| from_tch(&error))?;
        if let Some(grad_dtype) = grad_dtype {
            set_grad_dtype(&leaf, grad_dtype)?;
        }
        node::output(leaf)
    }

    fn accumulated(tensor: &DynTensor<Self>) -> Option<DynTensor<Self>> {
        let grad = tensor.array().f_grad().ok().filter(Tensor::defined)?;
        Array::new("grad", grad).ok().map(DynTensor::from_array)
    }

    fn assign_grad(tensor: &DynTensor<Self>, grad: Option<&DynTensor<Self>>) -> Result<()> {
        require_leaf("set_grad", tensor.array())?;
        if !tensor.array().requires_grad() {
            let producer = "an untracked tensor".to_owned();
            return Err(Error::NotALeaf { call: "set_grad", producer });
        }
        if let Some(grad) = grad {
            if grad.array().requires_grad() && grad.array().data_ptr() == tensor.array().data_ptr() {
                return Err(Error::OwnGrad);
            }
            let expected = grad_dtype(tensor.array())?.and_then(GradDType::dtype);
            let dtype = expected.filter(|&dtype| dtype != grad.dtype()).map(|dtype| (dtype, grad.dtype()));
            let shape =
                (tensor.shape() != grad.shape()).then(|| (tensor.shape().clone(), grad.shape().clone()));
            if dtype.is_some() || shape.is_some() {
                let (sender, receiver) = (GradientSender::Assigned, "a leaf".to_owned());
                return Err(Error::Gradient(Box::new(GradientMismatch { sender, receiver, shape, dtype })));
            }
        }
        ffi::assign_grad(tensor.array(), grad.map(|grad| grad.array().tensor()))
    }

    fn forget_grad(tensor: &DynTensor<Self>) {
        // Only a leaf has accumulated something, and of one it cannot fail.
        let _ = Self::assign_grad(tensor, None);
    }

    fn constant(tensor: &DynTensor<Self>) -> DynTensor<Self> {
        let array = tensor.array();
        let detached = array.f_detach().ok().and_then(|detached| Array::new("detach", detached).ok());
        DynTensor::from_array(detached.unwrap_or_else(|| array.clone()))
    }

    /// A node of our own, which passes the gradient on as it came. That of libtorch converts it to the storage dtype of `tensor`,
    /// and so would flush what `tensor` declared.
    fn converted(tensor: &DynTensor<Self>, dtype: DType) -> Result<DynTensor<Self>> {
        let is_recorded = ffi::is_grad_enabled() && tensor.array().requires_grad() && dtype.is_float();
        // Also to its own dtype, if its gradient has a narrower one.
        let is_kept = || {
            let grad_dtype = grad_dtype(tensor.array()).ok().flatten();
            dtype == tensor.dtype()
                && grad_dtype.is_none_or(|own| own.widest(GradDType::Exactly(dtype)) == own)
        };
        if !is_recorded || is_kept() {
            return tensor.array().cast(dtype).map(DynTensor::from_array);
        }
        only(Self::record_function(Cast { dtype }, &[Some(tensor)])?)
    }

    fn redeclared(
        tensor: &DynTensor<Self>,
        name: &'static str,
        grad_dtype: GradDType,
    ) -> Result<DynTensor<Self>> {
        if !tensor.array().requires_grad() {
            return Ok(tensor.clone());
        }
        only(Self::record_function(Redeclared { name, grad_dtype }, &[Some(tensor)])?)
    }
}

fn only(outputs: Outputs<Torch>) -> Result<DynTensor<Torch>> {
    outputs.into_iter().next().ok_or_else(|| crate::error::argument("apply", "there is no output"))
}

/// Conversion of values whose backward leaves conversion to the edge.
struct Cast {
    dtype: DType,
}

impl Function<Torch> for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        ctx.carry_grad_dtype();
        ctx.set_materialize_grads(false);
        Ok(DynTensor::from_array(inputs.get(0)?.array().cast(self.dtype)?).into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        Ok(grads)
    }
}

/// The same values under another gradient dtype.
struct Redeclared {
    name: &'static str,
    grad_dtype: GradDType,
}

impl Function<Torch> for Redeclared {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        ctx.set_output_grad_dtype(&[self.grad_dtype])?;
        ctx.set_materialize_grads(false);
        Ok(inputs.get(0)?.clone().into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        Ok(grads)
    }
}
