//! What an optimizer updates: a variable that holds a leaf, which a step replaces by another leaf.

use std::collections::HashMap;

use crate::autograd::{DynTensor, Origin};
use crate::contract::GradDType;
use crate::cpu::Array;
use crate::dtype::{DType, Element};
use crate::engine::Cpu;
use crate::error::{Error, Result};
use crate::typed::{GradType, Tensor};

mod sealed {
    pub trait Sealed {}
}

/// A variable that holds a parameter: a [`Tensor`] or a [`DynTensor`]. Sealed.
///
/// Tensors are immutable, so a step puts another leaf into the variable: with new values, and with the gradient dtype
/// (declared or default), the hooks and the metadata of the one before. Clones made earlier are not touched; so keep a
/// parameter that is used in two places in one variable.
///
/// A model lists its parameters like this:
///
/// ```
/// use gradpact::optim::Parameter;
/// use gradpact::prelude::*;
///
/// struct Layer {
///     weight: Tensor<f16, f32>,
///     bias: Tensor<f32>,
/// }
///
/// struct Model(Vec<Layer>);
///
/// impl Model {
///     fn parameters(&mut self) -> Vec<&mut dyn Parameter> {
///         self.0.iter_mut().flat_map(|l| -> [&mut dyn Parameter; 2] { [&mut l.weight, &mut l.bias] }).collect()
///     }
/// }
/// ```
pub trait Parameter: sealed::Sealed {
    /// The tensor without dtypes in its type.
    fn as_dyn(&self) -> &DynTensor;

    /// Whether the tensor has the dtypes that the variable's type says.
    #[doc(hidden)]
    fn check_type(&self) -> Result<()>;

    /// Puts a tensor of the same dtypes into the variable.
    #[doc(hidden)]
    fn replace(&mut self, tensor: DynTensor);
}

impl sealed::Sealed for DynTensor {}
impl Parameter for DynTensor {
    fn as_dyn(&self) -> &DynTensor {
        self
    }

    fn check_type(&self) -> Result<()> {
        Ok(())
    }

    fn replace(&mut self, tensor: DynTensor) {
        *self = tensor;
    }
}

impl<D: Element, G: GradType> sealed::Sealed for Tensor<D, G, Cpu> {}
impl<D: Element, G: GradType> Parameter for Tensor<D, G, Cpu> {
    fn as_dyn(&self) -> &DynTensor {
        self.as_dyn()
    }

    fn check_type(&self) -> Result<()> {
        Self::from_dyn(self.as_dyn().clone()).map(drop)
    }

    fn replace(&mut self, tensor: DynTensor) {
        *self = Self::wrap(tensor);
    }
}

/// A leaf as a call finds it in a variable, and its gradient.
pub(super) struct Leaf {
    pub(super) tensor: DynTensor,
    pub(super) grad: Option<Array>,
    pub(super) id: u64,
}

impl Leaf {
    /// The dtype that its updates are computed in: `f64` if its values or gradients may be `f64`, else `f32`.
    pub(super) fn wide(&self) -> DType {
        let grad_dtype = self.tensor.grad_dtype();
        let may_be_f64 = matches!(grad_dtype, Some(GradDType::Any | GradDType::Exactly(DType::F64)));
        if may_be_f64 || self.tensor.dtype() == DType::F64 { DType::F64 } else { DType::F32 }
    }

    /// Replaces the gradient.
    pub(super) fn set_grad(&self, grad: Array) {
        if let Some(leaf) = self.tensor.leaf() {
            leaf.set_grad(Some(DynTensor::with_origin(grad, Origin::Data)));
        }
    }
}

/// A number that this leaf, and no other, has.
pub(super) fn id_of(tensor: &DynTensor) -> Option<u64> {
    tensor.grad_fn().map(|node| node.sequence_nr())
}

/// The leaves in these variables.
///
/// # Errors
/// [`Error::Parameter`] for what is no leaf, was given twice, or has a gradient that is not what it declares;
/// [`Error::Argument`] if there are none; [`Error::TypedView`].
pub(super) fn leaves(operation: &'static str, params: &[&mut dyn Parameter]) -> Result<Vec<Leaf>> {
    if params.is_empty() {
        let problem = "expected parameters, got an empty list".to_owned();
        return Err(Error::Argument { operation, problem });
    }
    let mut positions = HashMap::new();
    let leaf = |(position, param): (usize, &&mut dyn Parameter)| {
        let wrong = |expected: String, got: String| Error::Parameter { operation, position, expected, got };
        let tensor = param.as_dyn();
        let (Some(_), Some(id)) = (tensor.leaf(), id_of(tensor)) else {
            let expected = "a leaf made with `requiring_grad`".to_owned();
            return Err(wrong(expected, tensor.describe()));
        };
        if let Some(before) = positions.insert(id, position) {
            return Err(wrong("each parameter once".to_owned(), format!("parameter {before} again")));
        }
        param.check_type()?;
        let grad = tensor.grad().map(DynTensor::into_array);
        if let Some(grad) = &grad {
            check_grad(tensor, grad).map_err(|(expected, got)| wrong(expected, got))?;
        }
        Ok(Leaf { tensor: tensor.clone(), grad, id })
    };
    params.iter().enumerate().map(leaf).collect()
}

/// Checks that a gradient is what its leaf declares; else what was expected, and what came.
fn check_grad(tensor: &DynTensor, grad: &Array) -> Result<(), (String, String)> {
    let declared = tensor.grad_dtype().and_then(GradDType::dtype).unwrap_or(grad.dtype());
    if declared == grad.dtype() && tensor.shape() == grad.shape() {
        return Ok(());
    }
    let described = |dtype: DType, array: &Array| format!("a gradient in {dtype} {}", array.shape());
    Err((described(declared, tensor.array()), described(grad.dtype(), grad)))
}

/// Forgets the gradients of all these parameters, for when they are not to be used in a step. A step does so itself.
pub fn zero_grad(params: &mut [&mut dyn Parameter]) {
    params.iter().for_each(|param| param.as_dyn().zero_grad());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_in_another_dtype_or_shape_than_the_leaf_declares_is_refused_with_its_position() {
        for (values, dtype, got) in [(2, DType::F16, "f16 [2]"), (3, DType::F32, "f32 [3]")] {
            let leaf = || DynTensor::ones([2], DType::F16).unwrap();
            let mut first = leaf().requiring_grad().unwrap();
            let mut second = leaf().requiring_grad_in(GradDType::Exactly(DType::F32)).unwrap();
            let grad = DynTensor::ones([values], dtype).unwrap();
            second.leaf().unwrap().set_grad(Some(grad));
            let params: [&mut dyn Parameter; 2] = [&mut first, &mut second];
            let error = leaves("step", &params).err().unwrap().to_string();
            let expected = "`step`: parameter 1: expected a gradient in f32 [2], got a gradient in";
            assert_eq!(error, format!("{expected} {got}"));
        }
    }
}
