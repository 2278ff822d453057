//! The state of a scaler as a file: PyTorch's five numbers.

use super::entries::{Entries, Writer};
use crate::error::{Error, Result};
use crate::optim::scaler::GradScaler;

impl GradScaler {
    /// All that the scaler knows, between two rounds. Needs the feature `safetensors`.
    ///
    /// # Errors
    /// [`Error::Argument`] inside a round: between an `unscale` or `step` and its `update`.
    pub fn to_safetensors(&self) -> Result<Vec<u8>> {
        let operation = "to_safetensors";
        if !self.round.is_empty() {
            let problem = "expected a scaler between two rounds, got one before its `update`".to_owned();
            return Err(Error::Argument { operation, problem });
        }
        let mut file = Writer::new(operation);
        file.number("scale", self.scale)?;
        file.number("growth_factor", self.growth_factor)?;
        file.number("backoff_factor", self.backoff_factor)?;
        file.number("growth_interval", as_i64(self.growth_interval))?;
        file.number("growth_tracker", as_i64(self.growth_tracker))?;
        file.finish()
    }

    /// Takes over all that [`to_safetensors`](Self::to_safetensors) wrote, and is between two rounds then. Needs the feature
    /// `safetensors`.
    ///
    /// # Errors
    /// [`Error::Entry`] for an entry that is missing, superfluous, or of another dtype or shape; [`Error::Argument`] for numbers
    /// out of range, and if the bytes are no such file. Then the scaler is as before.
    pub fn load_safetensors(&mut self, bytes: &[u8]) -> Result<()> {
        let mut file = Entries::parse("load_safetensors", bytes)?;
        let loaded = Self {
            scale: file.take_number("scale")?,
            growth_factor: file.take_number("growth_factor")?,
            backoff_factor: file.take_number("backoff_factor")?,
            growth_interval: file.take_count("growth_interval", 1)?,
            growth_tracker: file.take_count("growth_tracker", 0)?,
            ..Self::default()
        };
        file.finish()?;
        *self = loaded.checked()?;
        Ok(())
    }
}

/// Counts above the largest `i64` are never reached.
fn as_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
