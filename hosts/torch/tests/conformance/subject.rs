//! libtorch, as the cases use it.

use std::mem::size_of;

use gradpact::engine::Array as _;
use gradpact::function::Roots;
use gradpact::{BackwardOptions, DType, DynTensor, Result, Shape};
use gradpact_tests::conformance::num::Num;
use gradpact_tests::conformance::{Dyn, Subject};
use gradpact_torch::{Array, Torch, kind};
use tch::{Kind, Tensor};

/// libtorch with its own operations and its own engine; the Functions of the cases are nodes of its graph.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Libtorch {}

/// A tensor of tch as one of gradpact.
pub(crate) fn taken(tensor: Tensor) -> DynTensor<Torch> {
    DynTensor::from_array(Array::new("conformance", tensor).unwrap())
}

/// A recorded copy. tch has no `clone` of PyTorch's; this one passes its gradient on too.
pub(crate) fn cloned(x: &Tensor) -> Tensor {
    x.to_dtype(x.kind(), false, true)
}

/// What a tensor of tch holds.
pub(crate) fn read(tensor: &Tensor) -> Num {
    let dtype = Array::new("conformance", tensor.shallow_clone()).unwrap().dtype();
    let (count, size) = (tensor.numel(), tensor.kind().elt_size_in_bytes());
    let mut bytes = vec![0; count * size];
    tensor.detach().copy_data_u8(&mut bytes, count);
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let bits = bytes.chunks_exact(size).map(|element| {
        let mut wide = [0; size_of::<u64>()];
        wide[..size].copy_from_slice(element);
        let unused = 64 - 8 * size;
        let bits = u64::from_le_bytes(wide);
        if signed { ((bits << unused) as i64 >> unused) as u64 } else { bits }
    });
    Num { dtype, bits: bits.collect() }
}

impl Subject for Libtorch {
    type Engine = Torch;

    fn write(num: &Num, shape: impl Into<Shape>) -> Dyn<Self> {
        let kind = kind(num.dtype);
        let extents: Vec<i64> = shape.into().iter().map(|&extent| extent as i64).collect();
        let size = kind.elt_size_in_bytes();
        let bytes: Vec<u8> = num.bits.iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect();
        taken(Tensor::from_data_size(&bytes, &extents, kind))
    }

    fn read(tensor: &Dyn<Self>) -> Num {
        read(tensor.array())
    }

    fn grad(
        roots: &Roots<'_, Torch>,
        inputs: &[&Dyn<Self>],
        options: BackwardOptions,
    ) -> Result<Vec<Option<Dyn<Self>>>> {
        let roots: Vec<_> = roots
            .iter()
            .map(|(root, seed)| (root.array().tensor(), seed.map(|seed| seed.array().tensor())))
            .collect();
        let inputs: Vec<&Tensor> = inputs.iter().map(|input| input.array().tensor()).collect();
        let grads = gradpact_torch::grad(&roots, &inputs, options)?;
        Ok(grads.into_iter().map(|grad| grad.map(taken)).collect())
    }

    fn unrecorded<R>(body: impl FnOnce() -> R) -> R {
        tch::no_grad(body)
    }

    fn is_recording() -> bool {
        // tch cannot be asked.
        let x = Tensor::ones([1], (Kind::Float, tch::Device::Cpu)).set_requires_grad(true);
        (x * 1.0).requires_grad()
    }

    fn graph(tensor: &Dyn<Self>) -> String {
        gradpact_torch::grad_fn_name(tensor.array()).unwrap().unwrap_or_else(|| "None".to_owned())
    }

    fn same(x: &Dyn<Self>) -> Result<Dyn<Self>> {
        Ok(taken(cloned(x.array())))
    }

    fn view(x: &Dyn<Self>) -> Result<Dyn<Self>> {
        let x = x.array();
        Ok(taken(x.view([-1, 1]).view(&x.size()[..])))
    }
}
