//! A product of matrices: 1024 × 1024 by 1024 × 1024, sums in f32 whatever the storage.

use candle_core::{Device, Tensor as CandleTensor};
use gradpact::{DType, DynTensor};
use serde_json::json;

use crate::Outcome;
use crate::elementwise::{candle_dtype, numbers};
use crate::measure::{Column, Contender, Group};
use crate::torch::Torch;

const SIZE: usize = 1024;

/// The groups of this module.
///
/// # Errors
/// Those of the libraries.
pub fn groups(torch: &Torch) -> Outcome<Vec<Group>> {
    [DType::F32, DType::F16, DType::BF16].into_iter().map(|dtype| group(torch, dtype)).collect()
}

fn group(torch: &Torch, dtype: DType) -> Outcome<Group> {
    let values = numbers(SIZE * SIZE, 0.1);
    let ours = DynTensor::from_slice(&values, [SIZE, SIZE])?.cast(dtype)?;
    let to = candle_dtype(dtype)?;
    let candle = CandleTensor::from_slice(&values, (SIZE, SIZE), &Device::Cpu)?.to_dtype(to)?;
    let request = json!({ "case": "matmul", "dtype": dtype.to_string(), "size": SIZE });
    let contenders = vec![
        Contender::calling(Column::Ours, 1e3, move || Ok(ours.matmul(&ours)?)),
        Contender::calling(Column::Candle, 1e3, move || Ok(candle.matmul(&candle)?)),
        torch.contender(request),
    ];
    Ok(Group::new(format!("matmul 1024³, {dtype}"), "ms", contenders))
}
