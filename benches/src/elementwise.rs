//! Elementwise operations on large arrays, and a chain of them as a user writes it.

use candle_core::{DType as CandleDType, Device, Tensor as CandleTensor};
use gradpact::{DType, DynTensor};
use serde_json::json;

use crate::Outcome;
use crate::measure::{Column, Contender, Group};
use crate::torch::Torch;

/// How many elements a large array has.
pub const ELEMENTS: usize = 1 << 24;

/// Numbers that need no generator: of both signs, not periodic in a row.
pub fn numbers(count: usize, scale: f32) -> Vec<f32> {
    (0..count).map(|i| (((i * 7919 + 13) % 1000) as f32 / 500.0 - 1.0) * scale).collect()
}

/// candle's dtype of the same name.
///
/// # Errors
/// If there is none.
pub fn candle_dtype(dtype: DType) -> Outcome<CandleDType> {
    Ok(dtype.to_string().parse().map_err(|_| "no such dtype in candle")?)
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Mul,
    Silu,
    Exp,
    Tanh,
    Chain,
}

impl Operation {
    const ALL: [Self; 6] = [Self::Add, Self::Mul, Self::Silu, Self::Exp, Self::Tanh, Self::Chain];

    fn name(self) -> &'static str {
        match self {
            Self::Add => "a + b",
            Self::Mul => "a · b",
            Self::Silu => "silu(a)",
            Self::Exp => "exp(a)",
            Self::Tanh => "tanh(a)",
            Self::Chain => "silu(a · b + b) · a",
        }
    }

    fn ours(self, a: &DynTensor, b: &DynTensor) -> gradpact::Result<DynTensor> {
        match self {
            Self::Add => a.add(b),
            Self::Mul => a.mul(b),
            Self::Silu => a.silu(),
            Self::Exp => a.exp(),
            Self::Tanh => a.tanh(),
            Self::Chain => a.mul(b)?.add(b)?.silu()?.mul(a),
        }
    }

    fn candle(self, a: &CandleTensor, b: &CandleTensor) -> candle_core::Result<CandleTensor> {
        match self {
            Self::Add => a.add(b),
            Self::Mul => a.mul(b),
            Self::Silu => a.silu(),
            Self::Exp => a.exp(),
            Self::Tanh => a.tanh(),
            Self::Chain => a.mul(b)?.add(b)?.silu()?.mul(a),
        }
    }
}

/// The groups of this module.
///
/// # Errors
/// Those of the libraries.
pub fn groups(torch: &Torch) -> Outcome<Vec<Group>> {
    let dtypes = [DType::F32, DType::F16];
    dtypes.into_iter().flat_map(|dtype| Operation::ALL.map(|op| group(torch, op, dtype))).collect()
}

fn group(torch: &Torch, operation: Operation, dtype: DType) -> Outcome<Group> {
    let (a, b) = (numbers(ELEMENTS, 2.0), numbers(ELEMENTS + 7, 1.0)[7..].to_vec());
    let ours = |values: &[f32]| DynTensor::from_slice(values, [ELEMENTS])?.cast(dtype);
    let (our_a, our_b) = (ours(&a)?, ours(&b)?);
    let to = candle_dtype(dtype)?;
    let candle = |values: &[f32]| CandleTensor::from_slice(values, ELEMENTS, &Device::Cpu)?.to_dtype(to);
    let (candle_a, candle_b) = (candle(&a)?, candle(&b)?);
    let request = json!({ "case": "elementwise", "operation": format!("{operation:?}").to_lowercase(),
        "dtype": dtype.to_string(), "elements": ELEMENTS });
    let contenders = vec![
        Contender::calling(Column::Ours, 1e3, move || Ok(operation.ours(&our_a, &our_b)?)),
        Contender::calling(Column::Candle, 1e3, move || Ok(operation.candle(&candle_a, &candle_b)?)),
        torch.contender(request),
    ];
    Ok(Group::new(format!("{}, {dtype}, 16 Mi elements", operation.name()), "ms", contenders))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_mean_the_same_in_both_libraries() {
        let (a, b) = (numbers(100, 2.0), numbers(100, 1.0));
        for operation in Operation::ALL {
            let ours = |values: &[f32]| DynTensor::from_slice(values, [100]).unwrap();
            let candle = |values: &[f32]| CandleTensor::from_slice(values, 100, &Device::Cpu).unwrap();
            let ours = operation.ours(&ours(&a), &ours(&b)).unwrap().to_vec::<f32>().unwrap();
            let candle = operation.candle(&candle(&a), &candle(&b)).unwrap().to_vec1::<f32>().unwrap();
            let far = ours.iter().zip(&candle).find(|(a, b)| (*a - *b).abs() > 1e-5);
            assert_eq!(far, None, "{operation:?}");
        }
    }
}
