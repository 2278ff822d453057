//! What an audit costs: a conversion of a large gradient at an edge, and arithmetic on large tensors, with one and without.

use gradpact::audit::record;
use gradpact::{BackwardOptions, DType, DynTensor, GradDType, Result};

use crate::Outcome;
use crate::elementwise::ELEMENTS;
use crate::measure::{Column, Contender, Group};
use crate::torch::Torch;

/// The groups of this module.
///
/// # Errors
/// Those of the library.
pub fn groups(_: &Torch) -> Outcome<Vec<Group>> {
    Ok(vec![
        group("audited: a gradient of 16 Mi elements, f32 to f16", conversion(DType::F32, DType::F16)?),
        group("audited: a gradient of 16 Mi elements, f16 to f32", conversion(DType::F16, DType::F32)?),
        group("audited: f16 arithmetic on 16 Mi elements, forward and backward", arithmetic()?),
    ])
}

fn group(what: &str, run: impl Fn() -> Result<()> + Clone + 'static) -> Group {
    let again = run.clone();
    let audited = Contender::calling(Column::Ours, 1e3, move || Ok(record(&run).0?));
    let without = Column::Baseline("the same without an audit".to_owned());
    Group::new(what, "ms", vec![audited, Contender::calling(without, 1e3, move || Ok(again()?))])
}

/// A backward that converts a gradient of this dtype to that one.
fn conversion(from: DType, to: DType) -> Result<impl Fn() -> Result<()> + Clone> {
    let seed = DynTensor::full([ELEMENTS], 0.1, from)?;
    let x = DynTensor::ones([ELEMENTS], DType::F32)?.requiring_grad_in(GradDType::Exactly(to))?;
    Ok(move || {
        x.zero_grad();
        x.backward_with(&seed, BackwardOptions::new())
    })
}

/// A backward through f16 arithmetic.
fn arithmetic() -> Result<impl Fn() -> Result<()> + Clone> {
    let x = DynTensor::ones([ELEMENTS], DType::F16)?.requiring_grad()?;
    Ok(move || {
        x.zero_grad();
        x.mul(&x)?.sum_in(DType::F32)?.backward()
    })
}
