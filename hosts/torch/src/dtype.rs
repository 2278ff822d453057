//! Dtypes of gradpact and kinds of tch.

use gradpact::DType;
use tch::Kind;

/// The kind that tensors of this dtype have.
pub fn kind(dtype: DType) -> Kind {
    match dtype {
        DType::Bool => Kind::Bool,
        DType::U8 => Kind::Uint8,
        DType::I8 => Kind::Int8,
        DType::I16 => Kind::Int16,
        DType::I32 => Kind::Int,
        DType::I64 => Kind::Int64,
        DType::F8E4M3 => Kind::Float8e4m3fn,
        DType::F8E5M2 => Kind::Float8e5m2,
        DType::F16 => Kind::Half,
        DType::BF16 => Kind::BFloat16,
        DType::F32 => Kind::Float,
        DType::F64 => Kind::Double,
    }
}

/// What libtorch calls this dtype: its number among the `ScalarType`s, which do not change.
pub(crate) fn code(dtype: DType) -> i32 {
    match dtype {
        DType::U8 => 0,
        DType::I8 => 1,
        DType::I16 => 2,
        DType::I32 => 3,
        DType::I64 => 4,
        DType::F16 => 5,
        DType::F32 => 6,
        DType::F64 => 7,
        DType::Bool => 11,
        DType::BF16 => 15,
        DType::F8E5M2 => 23,
        DType::F8E4M3 => 24,
    }
}

/// The dtype of a `ScalarType`; `None` of one that gradpact does not have, such as complex numbers.
pub(crate) fn from_code(scalar_type: i32) -> Option<DType> {
    DType::ALL.into_iter().find(|&dtype| code(dtype) == scalar_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_libtorch_gives_tensors_of_these_kinds() {
        for dtype in DType::ALL {
            let tensor = tch::Tensor::zeros([1], (kind(dtype), tch::Device::Cpu));
            assert_eq!(tensor.kind(), kind(dtype));
            assert_eq!(crate::ffi::dtype_code(&tensor).unwrap(), code(dtype), "{dtype}");
            assert_eq!(from_code(code(dtype)), Some(dtype));
        }
    }
}
