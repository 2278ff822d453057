//! A tensor as a measured case writes it: dtype and stored bits.

use core::fmt;

use gradpact::cpu::Array;
use gradpact::{DType, DynTensor, Element, Shape, bf16, f8e4m3, f8e5m2, f16};
use serde_json::Value;

use crate::format;

/// The dtype of a PyTorch name; `None` where we have none like it.
pub fn dtype(name: &str) -> Option<DType> {
    Some(match name {
        "float8_e4m3fn" | "e4m3" => DType::F8E4M3,
        "float8_e5m2" | "e5m2" => DType::F8E5M2,
        "float16" | "f16" => DType::F16,
        "bfloat16" | "bf16" => DType::BF16,
        "float32" | "f32" => DType::F32,
        "float64" | "f64" => DType::F64,
        "bool" => DType::Bool,
        "uint8" => DType::U8,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        _ => return None,
    })
}

/// PyTorch's name of a dtype.
pub fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F8E4M3 => "float8_e4m3fn",
        DType::F8E5M2 => "float8_e5m2",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::Bool => "bool",
        DType::U8 => "uint8",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
    }
}

/// Dtype and stored bits of each element. Equal if all bits are, or both are NaN.
#[derive(Clone)]
pub struct Num {
    /// The type of the elements.
    pub dtype: DType,
    /// Their bits, row-major.
    pub bits: Vec<u64>,
}

impl Num {
    /// What a tensor holds.
    pub fn of(tensor: &DynTensor) -> Self {
        fn read<T: Element>(tensor: &DynTensor, bits: impl Fn(T) -> u64) -> Vec<u64> {
            tensor.array().to_vec::<T>().unwrap().into_iter().map(bits).collect()
        }
        let bits = match tensor.dtype() {
            DType::F8E4M3 => read(tensor, |v: f8e4m3| v.to_bits().into()),
            DType::F8E5M2 => read(tensor, |v: f8e5m2| v.to_bits().into()),
            DType::F16 => read(tensor, |v: f16| v.to_bits().into()),
            DType::BF16 => read(tensor, |v: bf16| v.to_bits().into()),
            DType::F32 => read(tensor, |v: f32| v.to_bits().into()),
            DType::F64 => read(tensor, f64::to_bits),
            DType::Bool => read(tensor, |v: bool| v.into()),
            DType::U8 => read(tensor, |v: u8| v.into()),
            DType::I8 => read(tensor, |v: i8| v as u64),
            DType::I16 => read(tensor, |v: i16| v as u64),
            DType::I32 => read(tensor, |v: i32| v as u64),
            DType::I64 => read(tensor, |v: i64| v as u64),
        };
        Self { dtype: tensor.dtype(), bits }
    }

    /// These values, each rounded once by exact arithmetic.
    pub fn exactly(dtype: DType, values: &[f64]) -> Self {
        Self {
            dtype,
            bits: values.iter().map(|&v| format::stored_bits(dtype, format::round(dtype, v))).collect(),
        }
    }

    /// The numbers of a measured case; `None` if they are of a dtype that we do not have.
    pub fn measured(name: &str, numbers: &Value) -> Option<Self> {
        let dtype = dtype(name)?;
        let bits = match numbers["bits"].as_array() {
            Some(bits) => {
                bits.iter().map(|hex| u64::from_str_radix(hex.as_str().unwrap(), 16).unwrap()).collect()
            }
            // Integers come without bits.
            None => numbers["v"].as_array()?.iter().map(|v| v.as_i64().unwrap_or_default() as u64).collect(),
        };
        Some(Self { dtype, bits })
    }

    /// Each element as an `f64`.
    pub fn values(&self) -> Vec<f64> {
        self.bits.iter().map(|&bits| value(self.dtype, bits)).collect()
    }

    /// The elements in `dtype`, each rounded once by exact arithmetic.
    pub fn rounded(&self, dtype: DType) -> Self {
        Self::exactly(dtype, &self.values())
    }

    /// A tensor of these very bits.
    pub fn tensor(&self, shape: impl Into<Shape>) -> DynTensor {
        fn write<T: Element>(num: &Num, shape: Shape, element: impl Fn(u64) -> T) -> DynTensor {
            let elements: Vec<T> = num.bits.iter().map(|&bits| element(bits)).collect();
            DynTensor::from_array(Array::from_vec(elements, shape).unwrap())
        }
        let shape = shape.into();
        match self.dtype {
            DType::F8E4M3 => write(self, shape, |b| f8e4m3::from_bits(b as u8)),
            DType::F8E5M2 => write(self, shape, |b| f8e5m2::from_bits(b as u8)),
            DType::F16 => write(self, shape, |b| f16::from_bits(b as u16)),
            DType::BF16 => write(self, shape, |b| bf16::from_bits(b as u16)),
            DType::F32 => write(self, shape, |b| f32::from_bits(b as u32)),
            DType::F64 => write(self, shape, f64::from_bits),
            DType::Bool => write(self, shape, |b| b != 0),
            DType::U8 => write(self, shape, |b| b as u8),
            DType::I8 => write(self, shape, |b| b as i8),
            DType::I16 => write(self, shape, |b| b as i16),
            DType::I32 => write(self, shape, |b| b as i32),
            DType::I64 => write(self, shape, |b| b as i64),
        }
    }

    /// The same elements as a tensor of one axis.
    pub fn vector(&self) -> DynTensor {
        self.tensor([self.bits.len()])
    }
}

/// A tensor of these values, each rounded once by exact arithmetic.
pub fn tensor(dtype: DType, values: &[f64]) -> DynTensor {
    Num::exactly(dtype, values).vector()
}

/// A tensor of `shape` filled with one value.
pub fn full(dtype: DType, shape: impl Into<Shape>, value: f64) -> DynTensor {
    let shape = shape.into();
    Num::exactly(dtype, &vec![value; shape.element_count()]).tensor(shape)
}

fn value(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F8E4M3 => f8e4m3::from_bits(bits as u8).to_f64(),
        DType::F8E5M2 => f8e5m2::from_bits(bits as u8).to_f64(),
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        DType::F64 => f64::from_bits(bits),
        _ => bits as i64 as f64,
    }
}

impl PartialEq for Num {
    fn eq(&self, other: &Self) -> bool {
        let same = |(&a, &b): (&u64, &u64)| {
            a == b || (value(self.dtype, a).is_nan() && value(self.dtype, b).is_nan())
        };
        self.dtype == other.dtype
            && self.bits.len() == other.bits.len()
            && self.bits.iter().zip(&other.bits).all(same)
    }
}

impl fmt::Debug for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:x?}", self.dtype, self.values(), self.bits)
    }
}
