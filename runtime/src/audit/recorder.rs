//! Starting and ending an audit.

use core::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::Audit;
use super::row::{Conversion, Event, Happened, Outcome, Row, Stage};
use crate::observe::{self, Admitted, Converted, Observation, Observer, Scene};

/// Runs `body` and tells what became of gradients and conversions in it, on this thread.
///
/// Audits nest: an outer one holds what an inner one holds too. What `body` returns comes back, an error as well: the
/// audit then has the rows up to it. Where `body` may panic, [`Recorder`] keeps them.
pub fn record<R>(body: impl FnOnce() -> R) -> (R, Audit) {
    let recorder = Recorder::start();
    let result = body();
    (result, recorder.finish())
}

/// An audit under way, on the thread that started it. Dropping it ends it.
///
/// # Examples
/// ```
/// use gradpact::audit::Recorder;
/// use gradpact::prelude::*;
///
/// let recorder = Recorder::start();
/// let x = Tensor::<f32>::scalar(1.0).requiring_grad()?;
/// x.exp()?.backward()?;
/// assert_eq!(recorder.finish().rows().count(), 2, "the seed, and the gradient of x");
/// # Ok::<(), Error>(())
/// ```
#[must_use = "an audit ends when its recorder is dropped"]
pub struct Recorder {
    notes: Rc<Notes>,
    _observation: Observation,
}

impl Recorder {
    /// Starts an audit of this thread.
    pub fn start() -> Self {
        let notes = Rc::new(Notes::default());
        let observer: Rc<dyn Observer> = Rc::<Notes>::clone(&notes);
        Self { notes, _observation: observe::observe(observer) }
    }

    /// What was observed so far; the audit goes on.
    pub fn so_far(&self) -> Audit {
        Audit { events: self.notes.events.borrow().clone() }
    }

    /// Ends the audit.
    pub fn finish(self) -> Audit {
        Audit { events: self.notes.events.take() }
    }
}

impl core::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Recorder({} events)", self.notes.events.borrow().len())
    }
}

#[derive(Default)]
struct Notes {
    events: RefCell<Vec<Event>>,
    /// The thread's numbers of calls, by the audit's own.
    calls: RefCell<HashMap<u64, u64>>,
}

impl Notes {
    fn call(&self, number: u64) -> u64 {
        let mut calls = self.calls.borrow_mut();
        let next = calls.len() as u64;
        *calls.entry(number).or_insert(next)
    }

    fn stage(&self, scene: &Scene) -> Stage {
        match scene {
            Scene::Function { function, phase, backward, .. } => Stage::Function {
                function: function.clone(),
                phase: *phase,
                backward: backward.as_ref().map(|(node, call)| (node.clone(), self.call(*call))),
            },
            Scene::Sum { node, position, call } => {
                Stage::Sum { node: node.clone(), output: *position as usize, call: self.call(*call) }
            }
        }
    }
}

impl Observer for Notes {
    fn admitted(&self, event: &Admitted<'_>) {
        let Some(call) = event.call else { return };
        let row = Row {
            call: self.call(call),
            sender: event.sender.clone(),
            receiver: event.receiver.clone(),
            output: event.position as usize,
            shape: event.shape.clone(),
            storage: event.storage,
            contract: event.contract,
            arrived: event.arrived,
            outcome: match event.outcome {
                Ok((dtype, census)) => Outcome::Delivered { dtype, census },
                Err(error) => Outcome::Refused(error.to_string()),
            },
        };
        self.events.borrow_mut().push(Event::Admission(Box::new(row)));
    }

    fn converted(&self, event: &Converted) {
        let stage = event.scene.as_ref().map_or(Stage::Outside, |scene| self.stage(scene));
        let (from, to, census) = (event.from, event.to, event.census);
        // Sums are formed wide; only what rounds them is of interest.
        if !stage.is_sum() || Happened::between(from, to) == Happened::Narrowed {
            let (operation, is_result) = (event.operation.clone(), event.is_result);
            let conversion = Conversion { stage, operation, is_result, from, to, census };
            self.events.borrow_mut().push(Event::Conversion(Box::new(conversion)));
        }
    }
}
