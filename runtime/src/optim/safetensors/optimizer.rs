//! The state of an optimizer as a file.
//!
//! | entry | what |
//! | --- | --- |
//! | `Adam.lr`, `Adam.beta1`, … | the rule's numbers, `f64 []`, and switches, `bool []` |
//! | `master_weights` | `bool []` |
//! | `parameters` | how many there are, `i64 []` |
//! | `0.parameter` | no elements: the first parameter's dtype, and its shape behind an extent of 0 |
//! | `0.step` | how many steps it had, `i64 []`; this and all below only if it had one |
//! | `0.exp_avg`, … | the moments, in `f32` or `f64` |
//! | `0.has_master` | `bool []` |
//! | `0.master` | the master copy, in `f32` or `f64`, if there is one |

use super::entries::{Entries, Writer, entry_error};
use crate::cpu::Array;
use crate::error::Result;
use crate::optim::optimizer::{Optimizer, Slot, State};
use crate::optim::rule::{Rule, Setting};
use crate::shape::Shape;

const LOAD: &str = "load_safetensors";

impl<R: Rule> Optimizer<R> {
    /// All that the optimizer knows: hyper-parameters, step counts, moments and master copies. Needs the feature
    /// `safetensors`. The parameters themselves are [saved](super::save) apart.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow) if there is not so much memory.
    pub fn to_safetensors(&self) -> Result<Vec<u8>> {
        let mut file = Writer::new("to_safetensors");
        let mut rule = self.rule.clone();
        for (name, setting) in rule.settings() {
            let name = format!("{}.{name}", R::NAME);
            match setting {
                Setting::Number(number) => file.number(&name, *number)?,
                Setting::Switch(switch) => file.number(&name, *switch)?,
            }
        }
        file.number("master_weights", self.master_weights)?;
        file.number("parameters", self.slots.len() as i64)?;
        for (position, slot) in self.slots.iter().enumerate() {
            let name = |what: &str| format!("{position}.{what}");
            file.array(&name("parameter"), &Array::zeros(empty(&slot.shape), slot.dtype)?)?;
            let Some(state) = &slot.state else { continue };
            file.number(&name("step"), state.steps as i64)?;
            for (what, moment) in self.rule.moment_names().iter().zip(&state.moments) {
                file.array(&name(what), moment)?;
            }
            file.number(&name("has_master"), state.master.is_some())?;
            if let Some(master) = &state.master {
                file.array(&name("master"), master)?;
            }
        }
        file.finish()
    }

    /// Takes over all that [`to_safetensors`](Self::to_safetensors) wrote, hyper-parameters included. Needs the feature
    /// `safetensors`.
    ///
    /// # Errors
    /// [`Error::Entry`](crate::Error::Entry) for an entry that is missing, superfluous, out of range, or of another dtype or shape; for the state of
    /// another rule; and for that of other parameters, if this optimizer has made steps. [`Error::Argument`](crate::Error::Argument) if the bytes are
    /// no such file. Then the optimizer is as before. An optimizer that has made no step checks the parameters in its first.
    pub fn load_safetensors(&mut self, bytes: &[u8]) -> Result<()> {
        let mut file = Entries::parse(LOAD, bytes)?;
        let rule = read_rule(&self.rule, &mut file)?;
        let master_weights = file.take_number("master_weights")?;
        let count = file.take_count("parameters", 0)?;
        if !self.slots.is_empty() && self.slots.len() as u64 != count {
            let expected = format!("{} parameters, as in the steps before", self.slots.len());
            return Err(entry_error(LOAD, "parameters", &expected, &count.to_string()));
        }
        // Not by count first: a damaged number could ask for more memory than there is.
        let mut slots = Vec::new();
        for position in 0..count {
            slots.push(read_slot(&rule, position, self.slots.get(slots.len()), &mut file)?);
        }
        file.finish()?;
        *self = Self { rule, master_weights, slots };
        Ok(())
    }
}

/// The numbers and switches of a rule.
fn read_rule<R: Rule>(rule: &R, file: &mut Entries<'_>) -> Result<R> {
    let name = |what: &str| format!("{}.{what}", R::NAME);
    if !file.names().any(|entry| entry == name("lr")) {
        let other = file.names().find_map(|entry| entry.strip_suffix(".lr"));
        let got =
            other.map_or_else(|| "no state of an optimizer".to_owned(), |other| format!("that of `{other}`"));
        return Err(entry_error(LOAD, &name("lr"), &format!("the state of `{}`", R::NAME), &got));
    }
    let mut rule = rule.clone();
    for (what, setting) in rule.settings() {
        match setting {
            Setting::Number(number) => *number = file.take_number(&name(what))?,
            Setting::Switch(switch) => *switch = file.take_number(&name(what))?,
        }
    }
    rule.check()?;
    Ok(rule)
}

/// What is known of the parameter at one position; `before` is what the optimizer knew.
fn read_slot<R: Rule>(
    rule: &R,
    position: u64,
    before: Option<&Slot>,
    file: &mut Entries<'_>,
) -> Result<Slot> {
    let name = |what: &str| format!("{position}.{what}");
    let (dtype, shape) = file.take_empty(&name("parameter"))?;
    if let Some(before) = before.filter(|before| (before.dtype, &before.shape) != (dtype, &shape)) {
        let expected = format!("{} {}, as in the steps before", before.dtype, before.shape);
        return Err(entry_error(LOAD, &name("parameter"), &expected, &format!("{dtype} {shape}")));
    }
    let had_a_step = file.names().any(|entry| entry == name("step"));
    let state = if had_a_step { Some(read_state(rule, name, &shape, file)?) } else { None };
    Ok(Slot { dtype, shape, leaf: None, state })
}

fn read_state<R: Rule>(
    rule: &R,
    name: impl Fn(&str) -> String,
    shape: &Shape,
    file: &mut Entries<'_>,
) -> Result<State> {
    let steps = file.take_count(&name("step"), 1)?;
    let moments = rule.moment_names().iter().map(|what| file.take_wide(&name(what), shape));
    let moments = moments.collect::<Result<Vec<_>>>()?;
    let has_master: bool = file.take_number(&name("has_master"))?;
    let master = if has_master { Some(file.take_wide(&name("master"), shape)?) } else { None };
    Ok(State { steps, moments, master })
}

/// The shape behind an extent of 0: of no elements.
fn empty(shape: &Shape) -> Shape {
    core::iter::once(0).chain(shape.iter().copied()).collect()
}
