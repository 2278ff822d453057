//! Tensors of tch as the arrays of an engine.

use core::ops::Deref;
use std::sync::OnceLock;

use gradpact::engine::{self, Engine};
use gradpact::{DType, Error, Result, Shape};
use tch::Device;

use crate::dtype::{from_code, kind};
use crate::error::{TorchError, argument};
use crate::ffi;

/// The engine whose arrays are tensors of tch, and whose graph is libtorch's.
#[derive(Clone, Copy, Debug)]
pub enum Torch {}

impl Engine for Torch {
    type Array = Array;

    const HAS_OWN_GRAPH: bool = true;
}

/// A tensor of tch that gradpact can work with: defined, strided, and of one of its twelve dtypes.
///
/// It dereferences to the [`tch::Tensor`]. A clone is the same tensor again, not a copy of its values. Values are shared with
/// whoever else has the tensor: what changes it in place changes it here too.
#[derive(Debug)]
pub struct Array {
    tensor: tch::Tensor,
    dtype: DType,
    // Asked for far less often than arrays are made.
    shape: OnceLock<Shape>,
}

impl Array {
    /// Takes a tensor in.
    ///
    /// # Errors
    /// [`Error::Argument`] if it is undefined, sparse or quantized, or of a dtype that gradpact does not have; `operation` is
    /// the name that the error gives.
    pub fn new(operation: &'static str, tensor: tch::Tensor) -> Result<Self> {
        let dtype = match ffi::dtype_code(&tensor)? {
            ffi::UNDEFINED => return Err(argument(operation, "the tensor is undefined")),
            ffi::NOT_STRIDED => {
                return Err(argument(
                    operation,
                    "the tensor is not strided (sparse or nested): call `to_dense` first",
                ));
            }
            code => from_code(code).ok_or_else(|| {
                let dtypes = "bool, u8, i8, i16, i32, i64, f8e4m3, f8e5m2, f16, bf16, f32 and f64";
                let kind = tensor.f_kind().map_or_else(|_| code.to_string(), |kind| format!("{kind:?}"));
                argument(operation, format!("the tensor is of kind {kind}; gradpact has {dtypes}"))
            })?,
        };
        Ok(Self { tensor, dtype, shape: OnceLock::new() })
    }

    /// The tensor.
    pub fn tensor(&self) -> &tch::Tensor {
        &self.tensor
    }

    /// The tensor.
    pub fn into_tensor(self) -> tch::Tensor {
        self.tensor
    }
}

/// The shape of a tensor.
pub(crate) fn shape_of(tensor: &tch::Tensor) -> Shape {
    tensor.size().into_iter().map(|extent| extent as usize).collect()
}

/// What tch reports, as an error of gradpact.
pub(crate) fn from_tch(error: &tch::TchError) -> Error {
    TorchError::new(error.to_string()).into()
}

impl Deref for Array {
    type Target = tch::Tensor;

    fn deref(&self) -> &tch::Tensor {
        &self.tensor
    }
}

impl Clone for Array {
    fn clone(&self) -> Self {
        Self { tensor: self.tensor.shallow_clone(), dtype: self.dtype, shape: self.shape.clone() }
    }
}

impl engine::Array for Array {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &Shape {
        self.shape.get_or_init(|| shape_of(&self.tensor))
    }

    fn cast(&self, dtype: DType) -> Result<Self> {
        if dtype == self.dtype {
            return Ok(self.clone());
        }
        let tensor = self.tensor.f_to_kind(kind(dtype)).map_err(|error| from_tch(&error))?;
        Ok(Self { tensor, dtype, shape: self.shape.clone() })
    }

    fn accumulate(self, other: &Self) -> Result<Self> {
        let other = other.cast(self.dtype)?;
        let tensor = self.tensor.f_add(&other.tensor).map_err(|error| from_tch(&error))?;
        Ok(Self { tensor, dtype: self.dtype, shape: self.shape })
    }

    fn full(shape: &Shape, value: f64, dtype: DType) -> Result<Self> {
        shape.checked_len()?;
        let extents: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        let tensor = tch::Tensor::f_full(extents, value, (kind(dtype), Device::Cpu));
        let tensor = tensor.map_err(|error| from_tch(&error))?;
        Ok(Self { tensor, dtype, shape: shape.clone().into() })
    }
}
