//! What an audit costs: a conversion of a large gradient at an edge, and arithmetic on large tensors, with and without one.
//!
//! `cargo bench -p gradpact-benches --bench audit`

use divan::Bencher;
use gradpact::audit::record;
use gradpact::prelude::*;

const ELEMENTS: usize = 16 << 20;

fn main() {
    divan::main();
}

/// A backward that converts a gradient of this dtype to that one.
fn conversion(from: DType, to: DType) -> Result<impl Fn() -> Result<()>> {
    let seed = DynTensor::full([ELEMENTS], 0.1, from)?;
    let x = DynTensor::ones([ELEMENTS], DType::F32)?.requiring_grad_in(GradDType::Exactly(to))?;
    Ok(move || {
        x.zero_grad();
        x.backward_with(&seed, BackwardOptions::new())
    })
}

/// A backward through f16 arithmetic.
fn arithmetic() -> Result<impl Fn() -> Result<()>> {
    let x = DynTensor::ones([ELEMENTS], DType::F16)?.requiring_grad()?;
    Ok(move || {
        x.zero_grad();
        x.mul(&x)?.sum_in(DType::F32)?.backward()
    })
}

fn compare(bencher: Bencher<'_, '_>, audited: bool, run: Result<impl Fn() -> Result<()>>) {
    match run {
        Ok(run) if audited => bencher.bench_local(|| record(&run).0),
        Ok(run) => bencher.bench_local(run),
        Err(error) => bencher.bench_local(|| error.to_string()),
    }
}

#[divan::bench(args = [false, true], sample_count = 9, sample_size = 1)]
fn f32_to_f16(bencher: Bencher<'_, '_>, audited: bool) {
    compare(bencher, audited, conversion(DType::F32, DType::F16));
}

#[divan::bench(args = [false, true], sample_count = 9, sample_size = 1)]
fn f16_to_f32(bencher: Bencher<'_, '_>, audited: bool) {
    compare(bencher, audited, conversion(DType::F16, DType::F32));
}

#[divan::bench(args = [false, true], sample_count = 9, sample_size = 1)]
fn f16_arithmetic(bencher: Bencher<'_, '_>, audited: bool) {
    compare(bencher, audited, arithmetic());
}
