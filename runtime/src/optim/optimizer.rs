//! The optimizer: a rule, and what it remembers for each parameter from step to step.

use std::collections::HashMap;

use super::parameter::{Leaf, Parameter, id_of, leaves};
use super::rule::{Rule, Setting, Update};
use crate::autograd::DynTensor;
use crate::cpu::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Updates parameters by a [`Rule`]: [`Sgd`](super::Sgd), [`Adam`](super::Adam) or [`AdamW`](super::AdamW).
///
/// Every step is given all parameters, in the same order; what is remembered of each belongs to its position. Parameters with
/// other hyper-parameters have an optimizer of their own.
///
/// The arithmetic of a step and all that is remembered are in `f32`, whatever the dtypes of parameter and gradient; in `f64`
/// where the parameter is stored in `f64`, or its gradient is declared `f64` or `any`. The new values are rounded once to the
/// parameter's dtype. With [`master_weights`](Self::master_weights) they are also kept as they were before that, so that
/// updates too small for the stored dtype add up.
///
/// See [the module](super) for an example.
#[derive(Debug)]
pub struct Optimizer<R> {
    pub(super) rule: R,
    pub(super) master_weights: bool,
    /// By position; empty before the first step.
    pub(super) slots: Vec<Slot>,
}

/// What is known of the parameter at one position.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// The leaf that the last step left there.
    pub(super) leaf: Option<u64>,
    /// `None` until the first gradient.
    pub(super) state: Option<State>,
}

/// What is remembered of a parameter.
#[derive(Debug)]
pub(super) struct State {
    pub(super) steps: u64,
    pub(super) moments: Vec<Array>,
    pub(super) master: Option<Array>,
}

impl<R: Rule> Optimizer<R> {
    /// An optimizer that has made no step.
    ///
    /// # Errors
    /// [`Error::Argument`] if a number of the rule is out of range: negative, infinite or NaN.
    pub fn new(rule: R) -> Result<Self> {
        rule.check()?;
        Ok(Self { rule, master_weights: false, slots: Vec::new() })
    }

    /// Keeps a copy of each parameter in the dtype of the arithmetic, `f32` or `f64`, if the parameter is stored in a narrower
    /// one. A step updates the copy and rounds it to what is stored.
    ///
    /// The copy starts from the stored values, and starts again from them when somebody else has put a leaf with other
    /// values into the variable.
    #[must_use]
    pub fn master_weights(mut self, keep: bool) -> Self {
        self.master_weights = keep;
        self
    }

    /// The rule and its numbers.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// The learning rate.
    pub fn lr(&self) -> f64 {
        self.rule.lr()
    }

    /// Changes the learning rate of the steps to come.
    ///
    /// # Errors
    /// [`Error::Argument`] if it is negative, infinite or NaN; then it stays as it was.
    pub fn set_lr(&mut self, lr: f64) -> Result<()> {
        let mut rule = self.rule.clone();
        if let Some((_, Setting::Number(number))) = rule.settings().into_iter().next() {
            *number = lr;
        }
        rule.check()?;
        self.rule = rule;
        Ok(())
    }

    /// Updates the parameters by their gradients.
    ///
    /// Each parameter that has a gradient becomes a new leaf: with the gradient dtype, the hooks and the metadata of the one
    /// before, and without a gradient, so that the next backward starts afresh and no `zero_grad` is needed. A hook's handle
    /// removes it from the new leaf. A parameter without a gradient is left as it is. After an error so are all, and so is
    /// what the optimizer remembers.
    ///
    /// What the optimizer remembers (momentum, moments) belongs to the position: a new leaf of the same dtype and shape in the
    /// variable goes on with it.
    ///
    /// # Errors
    /// [`Error::Parameter`], naming the position, for a parameter that is no leaf or was given twice, whose gradient has not
    /// its declared dtype, or that has another shape, dtype or place in the order than in the steps before;
    /// [`Error::Argument`] for another number of parameters.
    pub fn step(&mut self, params: &mut [&mut dyn Parameter]) -> Result<()> {
        let leaves = leaves("step", params)?;
        self.check(&leaves)?;
        self.step_leaves(params, &leaves)
    }

    /// [`step`](Self::step) on leaves that were checked, by the gradients that stand there.
    pub(super) fn step_leaves(&mut self, params: &mut [&mut dyn Parameter], leaves: &[Leaf]) -> Result<()> {
        if self.slots.is_empty() {
            self.slots = leaves.iter().map(Slot::of).collect();
        }
        let updates = self.slots.iter().zip(leaves).map(|(slot, leaf)| match &leaf.grad {
            Some(grad) => self.updated(slot, leaf, grad).map(Some),
            None => Ok(None),
        });
        let updates = updates.collect::<Result<Vec<_>>>()?;
        // From here on nothing can fail.
        for ((slot, leaf), (param, update)) in
            self.slots.iter_mut().zip(leaves).zip(params.iter_mut().zip(updates))
        {
            slot.leaf = Some(leaf.id);
            if let Some((next, state)) = update {
                slot.leaf = id_of(&next);
                slot.state = Some(state);
                param.replace(next);
            }
        }
        Ok(())
    }

    /// The leaf that takes the place of `leaf`, and what is remembered then.
    fn updated(&self, slot: &Slot, leaf: &Leaf, grad: &Array) -> Result<(DynTensor, State)> {
        let (stored, wide) = (leaf.tensor.array(), leaf.wide());
        let has_master = self.master_weights && wide != stored.dtype();
        let master = if has_master { Some(slot.master(leaf, wide)?) } else { None };
        let (steps, moments) = slot.state.as_ref().map_or((0, &[][..]), |s| (s.steps, &s.moments));
        let (value, moments) = self.rule.update(&Update {
            wide,
            dtype: if has_master { wide } else { stored.dtype() },
            value: master.as_ref().unwrap_or(stored),
            grad,
            moments,
            step: steps + 1,
        })?;
        let next = leaf.tensor.succeeded_by(value.cast(stored.dtype())?)?;
        Ok((next, State { steps: steps + 1, moments, master: has_master.then_some(value) }))
    }

    /// Checks that these are the parameters of the steps before.
    pub(super) fn check(&self, leaves: &[Leaf]) -> Result<()> {
        let operation = "step";
        if self.slots.is_empty() {
            return Ok(());
        }
        if self.slots.len() != leaves.len() {
            let problem =
                format!("expected {} parameters, as before, got {}", self.slots.len(), leaves.len());
            return Err(Error::Argument { operation, problem });
        }
        let before: HashMap<_, _> =
            self.slots.iter().enumerate().filter_map(|(at, slot)| Some((slot.leaf?, at))).collect();
        for (position, (slot, leaf)) in self.slots.iter().zip(leaves).enumerate() {
            let wrong =
                |expected: String, got: String| Err(Error::Parameter { operation, position, expected, got });
            let (dtype, shape) = (leaf.tensor.dtype(), leaf.tensor.shape());
            if (slot.dtype, &slot.shape) != (dtype, shape) {
                let expected = format!("{} {}, as before", slot.dtype, slot.shape);
                return wrong(expected, format!("{dtype} {shape}"));
            }
            if slot.state.as_ref().is_some_and(State::is_f64) && leaf.wide() != DType::F64 {
                let got = "narrower ones".to_owned();
                return wrong("f64 values or gradients, as before".to_owned(), got);
            }
            if let Some(place) = before.get(&leaf.id).filter(|&&place| place != position) {
                let got = format!("the one that had position {place}");
                return wrong("the parameter that had this position before".to_owned(), got);
            }
        }
        Ok(())
    }
}

impl State {
    /// Whether something is remembered in `f64`, which must not be rounded to `f32`.
    fn is_f64(&self) -> bool {
        self.moments.iter().chain(&self.master).any(|array| array.dtype() == DType::F64)
    }
}

impl Slot {
    fn of(leaf: &Leaf) -> Self {
        Self { dtype: leaf.tensor.dtype(), shape: leaf.tensor.shape().clone(), leaf: None, state: None }
    }

    /// The master copy, if it is one of the values that `leaf` has; else a new one.
    fn master(&self, leaf: &Leaf, wide: DType) -> Result<Array> {
        let stored = leaf.tensor.array();
        match self.state.as_ref().and_then(|state| state.master.as_ref()) {
            Some(master) if self.leaf == Some(leaf.id) || same_values(&master.cast(self.dtype)?, stored)? => {
                master.cast(wide)
            }
            _ => stored.cast(wide),
        }
    }
}

/// Whether two arrays of one dtype and shape have the same values, signs of zeros and NaNs included.
fn same_values(a: &Array, b: &Array) -> Result<bool> {
    let (a, b) = (a.to_f64_vec()?, b.to_f64_vec()?);
    Ok(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())))
}
