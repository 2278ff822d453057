//! Parameters, and the state of optimizers and scalers, as [safetensors](https://github.com/huggingface/safetensors) files.
//!
//! Everything is bytes here: `std::fs::write` and `std::fs::read` do the rest. Tensors have the format's own dtypes, so that
//! other programs read them: `f8e4m3` is `F8_E4M3`, `f8e5m2` is `F8_E5M2`, and so on for all twelve. The same contents give
//! the same bytes.
//!
//! Loading is all or nothing: a file that is damaged, lacks an entry or has one too many, or has one of another dtype or
//! shape, is an error that names the entry, and nothing is changed. Training that is resumed from files goes on bit by bit as
//! if it had never stopped.
//!
//! # Examples
//! ```
//! use gradpact::optim::{Adam, GradScaler, Optimizer, safetensors};
//! use gradpact::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let mut w = Tensor::<bf16, f32>::ones([2, 3])?.requiring_grad()?;
//! let mut optimizer = Optimizer::new(Adam::new(0.125))?.master_weights(true);
//! w.sum()?.backward()?;
//! optimizer.step(&mut [&mut w])?;
//!
//! let weights: Vec<u8> = safetensors::save(&[("w", &w)])?;
//! let state: Vec<u8> = optimizer.to_safetensors()?;
//! let scaler: Vec<u8> = GradScaler::default().to_safetensors()?;
//!
//! let mut w = Tensor::<bf16, f32>::zeros([2, 3])?.requiring_grad()?;
//! let mut optimizer = Optimizer::new(Adam::new(1.0))?;
//! safetensors::load(&weights, &mut [("w", &mut w)])?;
//! optimizer.load_safetensors(&state)?;
//! GradScaler::default().load_safetensors(&scaler)?;
//! assert_eq!((w.to_vec()?[5].to_f32(), optimizer.lr()), (0.875, 0.125));
//! # Ok(())
//! # }
//! ```

mod bytes;
mod entries;
mod optimizer;
mod scaler;

use self::entries::{Entries, Writer};
use super::parameter::Parameter;
use crate::autograd::{DynTensor, Origin};
use crate::error::{Error, Result};

/// The values of these tensors under these names: parameters, and tensors of any dtype that are not tracked.
///
/// # Errors
/// [`Error::Entry`] for a name that is given twice or that the format reserves.
pub fn save(tensors: &[(&str, &dyn Parameter)]) -> Result<Vec<u8>> {
    let mut file = Writer::new("save");
    for (name, tensor) in tensors {
        file.array(name, tensor.as_dyn().array())?;
    }
    file.finish()
}

/// Loads the values under these names, which must be all that the file has.
///
/// A parameter becomes a new leaf, as in a [step](super::Optimizer::step): it keeps gradient dtype, hooks and metadata, and has no
/// gradient. A tensor that is not tracked becomes another such.
///
/// # Errors
/// [`Error::Entry`] for an entry that is missing, superfluous, or of another dtype or shape than its tensor, and for a
/// tensor that was computed from others; [`Error::Argument`] if the bytes are no such file. Then nothing is loaded.
pub fn load(bytes: &[u8], tensors: &mut [(&str, &mut dyn Parameter)]) -> Result<()> {
    let operation = "load";
    let mut file = Entries::parse(operation, bytes)?;
    let mut loaded = Vec::new();
    for (name, variable) in tensors.iter() {
        let tensor = variable.as_dyn();
        let wrong = |expected: &str, got: String| {
            let (entry, expected) = ((*name).to_owned(), expected.to_owned());
            Error::Entry { operation, entry, expected, got }
        };
        if !tensor.is_leaf() {
            return Err(wrong("a leaf, or a tensor that is not tracked, to load into", tensor.describe()));
        }
        variable.check_type()?;
        let array = file.take(name, tensor.dtype(), tensor.shape())?;
        loaded.push(if tensor.requires_grad() {
            tensor.succeeded_by(array)?
        } else {
            DynTensor::with_origin(array, Origin::Data)
        });
    }
    file.finish()?;
    for ((_, variable), tensor) in tensors.iter_mut().zip(loaded) {
        variable.replace(tensor);
    }
    Ok(())
}
