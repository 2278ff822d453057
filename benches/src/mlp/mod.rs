//! A training step of a multi-layer perceptron: forward, loss, backward, and a step of SGD.
//!
//! Three layers without bias, `silu(x · w)` each; the loss is the mean of the squares. In f32 everywhere; and with weights and
//! activations stored in f16 while gradients are f32, as far as a library can.

mod burn;
mod candle;
mod ours;

use gradpact::DType;
use serde_json::json;

use crate::measure::{Column, Contender, Group};
use crate::torch::Torch;
use crate::{Outcome, child};

const LAYERS: usize = 3;
const RATE: f64 = 0.01;

/// What one training step does; the same in every library.
trait Trains: 'static {
    /// Goes one step, and tells the loss before it.
    fn step(&mut self) -> Outcome<f64>;
}

/// How large it is.
#[derive(Clone, Copy, Debug)]
struct Size {
    width: usize,
    batch: usize,
}

impl Size {
    fn weights(self) -> Vec<f32> {
        // Small enough that three layers keep the size of what goes through them.
        crate::elementwise::numbers(self.width * self.width, 1.5 / (self.width as f32).sqrt())
    }

    fn input(self) -> Vec<f32> {
        crate::elementwise::numbers(self.batch * self.width, 1.0)
    }
}

fn contender(column: Column, mut model: impl Trains) -> Contender {
    Contender::calling(column, 1e3, move || model.step())
}

/// The groups of this module.
///
/// # Errors
/// Those of the libraries.
pub fn groups(torch: &Torch) -> Outcome<Vec<Group>> {
    let mut groups = Vec::new();
    for size in [Size { width: 1024, batch: 256 }, Size { width: 64, batch: 64 }] {
        let Size { width, batch } = size;
        let request = |case: &str, dtype: &str| {
            torch.contender(json!({ "case": case, "dtype": dtype, "width": width, "batch": batch }))
        };
        let what = |dtypes: &str| format!("training step, width {width}, batch {batch}, {dtypes}");
        let single = vec![
            contender(Column::Ours, ours::Single::new(size)?),
            contender(Column::Candle, candle::Model::new(size, DType::F32)?),
            contender(Column::Burn, burn::Model::new(size)),
            request("mlp", "f32"),
        ];
        groups.push(Group::new(what("f32"), "ms", single));
        let mixed = vec![
            contender(Column::Ours, ours::Mixed::new(size)?),
            contender(Column::Candle, candle::Model::new(size, DType::F16)?),
            Contender::absent(Column::Burn, "no f16"),
            request("mlp", "f16"),
        ];
        groups
            .push(Group::new(what("f16 with f32 gradients (candle: f16 gradients)"), "ms", mixed).at_most(7));
        if width > 64 {
            for dtype in ["f32", "f16"] {
                let job = ["mlp-memory", dtype, &width.to_string(), &batch.to_string()];
                let memory = vec![child::contender(Column::Ours, &job), request("mlp-memory", dtype)];
                groups.push(
                    Group::new(format!("{}: peak memory, weights included", what(dtype)), "MiB", memory)
                        .at_most(3),
                );
            }
        }
    }
    Ok(groups)
}

/// The job of a child: by how many MiB memory peaks in three steps, over what the process had before there was a model.
///
/// # Errors
/// If the dtype is neither `f32` nor `f16`.
pub fn memory(dtype: &str, width: usize, batch: usize) -> Outcome<Vec<f64>> {
    let size = Size { width, batch };
    match dtype {
        "f32" => peak(ours::Single::new, size),
        "f16" => peak(ours::Mixed::new, size),
        _ => Err(format!("no model in {dtype}").into()),
    }
}

fn peak<T: Trains>(make: impl Fn(Size) -> Outcome<T>, size: Size) -> Outcome<Vec<f64>> {
    // Threads and buffers that come with the first step whatever its size.
    make(Size { width: 8, batch: 8 })?.step()?;
    let before = child::resident()?;
    let mut model = make(size)?;
    child::forget_peak()?;
    for _ in 0..3 {
        model.step()?;
    }
    Ok(vec![(child::peak()? - before) / f64::from(1 << 20)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The losses of three steps.
    fn losses(mut model: impl Trains) -> Vec<f64> {
        (0..3).map(|_| model.step().unwrap()).collect()
    }

    #[test]
    fn every_library_trains_the_same_model() {
        let size = Size { width: 16, batch: 8 };
        let ours = losses(ours::Single::new(size).unwrap());
        assert!(ours[2] < ours[0], "{ours:?}");
        let close = |others: Vec<f64>, tolerance: f64| {
            for (ours, other) in ours.iter().zip(&others) {
                assert!((ours - other).abs() < tolerance * ours, "{ours} {other}");
            }
        };
        close(losses(candle::Model::new(size, DType::F32).unwrap()), 1e-4);
        close(losses(burn::Model::new(size)), 1e-4);
        close(losses(ours::Mixed::new(size).unwrap()), 1e-2);
        close(losses(candle::Model::new(size, DType::F16).unwrap()), 1e-2);
    }
}
