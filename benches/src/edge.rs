//! What the contract costs at an edge: two large gradients arrive in one dtype, are converted to the declared one, and summed.
//!
//! Held against a copy of the same bytes. The gradients are seeds of one root, so that no kernel runs but that of the edge.

use gradpact::{BackwardOptions, DType, DynTensor, GradDType};
use serde_json::json;

use crate::Outcome;
use crate::elementwise::{ELEMENTS, numbers};
use crate::measure::{Column, Contender, Group};
use crate::torch::Torch;

/// Stored and declared in the first dtype; gradients arrive in the second.
const CASES: [(DType, DType); 5] = [
    (DType::F16, DType::F32),
    (DType::BF16, DType::F32),
    (DType::F32, DType::F16),
    (DType::F32, DType::BF16),
    (DType::F32, DType::F32),
];

/// The groups of this module.
///
/// # Errors
/// Those of the libraries.
pub fn groups(torch: &Torch) -> Outcome<Vec<Group>> {
    CASES.into_iter().map(|(declared, arriving)| group(torch, declared, arriving)).collect()
}

fn group(torch: &Torch, declared: DType, arriving: DType) -> Outcome<Group> {
    let what = format!("two {arriving} gradients of 16 Mi elements into an edge declared {declared}");
    // Two are read and one is written; a copy reads as much as it writes.
    let bytes = ELEMENTS * (2 * arriving.size_in_bytes() + declared.size_in_bytes()) / 2;
    let request = json!({ "case": "edge", "declared": declared.to_string(), "arriving": arriving.to_string(),
        "elements": ELEMENTS });
    let contenders =
        vec![ours(declared, arriving)?, copy(bytes), copy_to_new(bytes), torch.contender(request)];
    Ok(Group::new(what, "ms", contenders))
}

fn ours(declared: DType, arriving: DType) -> Outcome<Contender> {
    let values = DynTensor::from_vec(numbers(ELEMENTS, 1.0), [ELEMENTS])?;
    let x = values.cast(declared)?.requiring_grad_in(GradDType::Exactly(declared))?;
    let (first, second) = (values.cast(arriving)?, values.neg()?.cast(arriving)?);
    Ok(Contender::calling(Column::Ours, 1e3, move || {
        x.zero_grad();
        gradpact::backward(&[(&x, Some(&first)), (&x, Some(&second))], BackwardOptions::new())?;
        Ok(())
    }))
}

fn copy(bytes: usize) -> Contender {
    let (from, mut to) = (vec![1_u8; bytes], vec![0_u8; bytes]);
    Contender::calling(Column::Baseline("copy of as many bytes".to_owned()), 1e3, move || {
        to.copy_from_slice(&from);
        std::hint::black_box(&mut to);
        Ok(())
    })
}

fn copy_to_new(bytes: usize) -> Contender {
    let from = vec![1_u8; bytes];
    Contender::calling(Column::Baseline("copy into new memory".to_owned()), 1e3, move || Ok(from.clone()))
}
