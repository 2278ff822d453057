//! What optimizers differ in: their formulas, their numbers, and what they remember for each parameter.

use core::fmt::Debug;

use crate::cpu::Array;
use crate::cpu::kernels::Real;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The formulas and numbers of an optimizer: [`Sgd`](super::Sgd), [`Adam`](super::Adam) or [`AdamW`](super::AdamW). Sealed.
///
/// A rule is plain data. It is checked when an [`Optimizer`](super::Optimizer) is made of it.
pub trait Rule: Formulas {
    /// The learning rate.
    fn lr(&self) -> f64;
}

/// What only this crate may implement and call.
pub trait Formulas: Clone + Debug + Send + Sync + 'static {
    /// The name in errors and files.
    const NAME: &'static str;

    /// Checks every number.
    fn check(&self) -> Result<()>;

    /// Every number and switch, by the name it has in files. The first is the learning rate.
    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)>;

    /// The names of what is remembered of each parameter.
    fn moment_names(&self) -> &'static [&'static str];

    /// The new values, in the dtype of the result, and the new moments.
    fn update(&self, update: &Update<'_>) -> Result<(Array, Vec<Array>)>;
}

/// A number or a switch of a rule.
#[derive(Debug)]
pub enum Setting<'a> {
    /// A number.
    Number(&'a mut f64),
    /// A switch.
    Switch(&'a mut bool),
}

/// One parameter in one step.
#[derive(Debug)]
pub struct Update<'a> {
    /// The dtype to compute in, and of the moments: `f32` or `f64`.
    pub(super) wide: DType,
    /// The dtype to round the new values to.
    pub(super) dtype: DType,
    /// The values: of the parameter, or of its master copy.
    pub(super) value: &'a Array,
    /// The gradient.
    pub(super) grad: &'a Array,
    /// What was remembered; nothing in the first step.
    pub(super) moments: &'a [Array],
    /// The number of this step for this parameter, from 1.
    pub(super) step: u64,
}

/// Checks a number of a rule.
pub(super) fn require(rule: &'static str, name: &str, value: f64, what: &str, holds: bool) -> Result<()> {
    if holds && value.is_finite() {
        return Ok(());
    }
    let problem = format!("expected {name} to be {what}, got {value}");
    Err(Error::Argument { operation: rule, problem })
}

/// Checks that a number of a rule is finite and at least zero.
pub(super) fn require_not_negative(rule: &'static str, name: &str, value: f64) -> Result<()> {
    require(rule, name, value, "finite and not negative", value >= 0.0)
}

/// `g + rate·p`: the gradient of the loss with `rate/2·p²` added. Without a rate `p` does not enter, so that an infinite value
/// makes no NaN of the gradient.
pub(super) fn decayed<R: Real>(rate: f64) -> impl Fn(R, R) -> R + Copy + Sync {
    let (none, rate) = (rate == 0.0, R::from_f64(rate));
    move |p, g| if none { g } else { g + rate * p }
}
