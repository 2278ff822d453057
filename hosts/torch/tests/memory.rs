//! Resident memory stays flat over many graphs, good and failing; every Function's state is dropped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicIsize, Ordering};

use gradpact::prelude::*;
use gradpact_torch::{FromTch, Torch};
use tch::{Kind, Tensor as Tch};

static ALIVE: AtomicIsize = AtomicIsize::new(0);

/// Counts how many of it there are.
struct Counted {
    ends: u32,
}

impl Counted {
    fn new(ends: u32) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self { ends }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Function<Torch> for Counted {
    fn name(&self) -> &'static str {
        "Counted"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        if self.ends == 1 {
            return Err(Error::custom("forward"));
        }
        let x = inputs.get(0)?;
        let y = DynTensor::<Torch>::from_tch(x.array().neg())?;
        ctx.save_for_backward([x, &y]);
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F64)])?;
        Ok(y.into())
    }

    fn backward(&self, ctx: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        ctx.saved_tensors()?;
        match self.ends {
            2 => Err(Error::custom("backward")),
            3 => std::panic::panic_any(Box::new([0_u8; 4096])),
            _ => Ok(DynTensor::<Torch>::from_tch(grads[0].as_ref().unwrap().array().neg())?.into()),
        }
    }
}

fn graph(round: u32, failing: bool) {
    let x = Tch::zeros([64], (Kind::Float, tch::Device::Cpu)).set_requires_grad(true);
    let x = DynTensor::<Torch>::from_tch(x).unwrap();
    let Ok(y) = apply(Counted::new(0), &[&x]) else { return };
    let ends = if failing { 1 + round % 3 } else { 0 };
    let Ok(y) = apply(Counted::new(ends), &[&y[0]]) else { return };
    let sum = y[0].array().sum(Kind::Float);
    let run = || gradpact_torch::backward(&[(&sum, None)], BackwardOptions::new());
    let outcome = catch_unwind(AssertUnwindSafe(run));
    assert_eq!(matches!(outcome, Ok(Ok(()))), !failing);
}

/// Resident memory in kB.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_is_flat_over_forty_thousand_graphs_that_end_well_and_as_many_that_fail() {
    std::panic::set_hook(Box::new(|_| ()));
    for failing in [false, true] {
        (0..4000).for_each(|round| graph(round, failing));
        let before = resident();
        (0..40_000).for_each(|round| graph(round, failing));
        let grown = resident() - before;
        assert!(grown < 2000, "{grown} kB over 40,000 graphs, failing: {failing}");
        assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
    }
}
