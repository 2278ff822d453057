//! Group 6: what hooks see, in which order, and what they may not return.

use std::sync::{Arc, Mutex};

use gradpact::{BackwardOptions, DType, DynTensor, GradDType, Gradients, Result};

use crate::built_in;
use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::probe::{Log, Probe, ones};
use crate::row::{Row, declaration};
use crate::rules::{Rule, Way, admitted};
use crate::step::Step;
use crate::sums::summed;

const F32: GradDType = GradDType::Exactly(DType::F32);

/// Which hook it was, and what it saw.
type Event = (String, Option<Num>);

/// What hooks noted.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    /// Notes what a hook sees.
    pub(crate) fn note(&self, who: &str, saw: Option<&DynTensor>) {
        self.push(who, saw.map(Num::of));
    }

    /// Adds what a hook saw elsewhere, or must see.
    pub(crate) fn push(&self, who: &str, saw: Option<Num>) {
        self.0.lock().unwrap().push((who.to_owned(), saw));
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(who, _)| who.clone()).collect()
    }

    /// Puts them into an outcome, numbered.
    pub(crate) fn into(self, mut outcome: Outcome) -> Outcome {
        for (nth, (who, saw)) in self.0.lock().unwrap().drain(..).enumerate() {
            outcome.extra.insert(format!("{nth} {who}"), vec![saw]);
        }
        outcome
    }
}

/// The events of a measured case.
fn measured_events(row: &Row) -> Events {
    let events = Events::default();
    for event in row.json["extra"]["events"].as_array().into_iter().flatten() {
        let who = event[0].as_str().unwrap();
        let note = |who: String, saw: &serde_json::Value| {
            events.push(&who, Num::measured(saw["dtype"].as_str().unwrap(), saw));
        };
        if event[1]["dtype"].is_string() {
            note(who.to_owned(), &event[1]);
        } else {
            ["grad_inputs", "grad_outputs"]
                .iter()
                .for_each(|side| note(format!("{who} {side}"), &event[1][side]));
        }
    }
    events
}

/// `6.observe/DECLARED`: hooks of every kind look at one gradient.
pub(crate) fn observe(row: &Row) -> Step {
    let declared = declaration(row.rest());
    let (log, events) = (Log::default(), Events::default());
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, DType::F16, declared).on(&x).unwrap()[0];
    let node = y.grad_fn().unwrap();
    let on_tensor = |who: &'static str| {
        let events = events.clone();
        move |grad: &DynTensor| {
            events.note(who, Some(grad));
            Ok(None)
        }
    };
    let notes = events.clone();
    node.register_prehook(move |grads| {
        notes.note("y.grad_fn prehook", grads[0].as_ref());
        Ok(None)
    });
    y.register_hook(on_tensor("y tensor hook")).unwrap();
    y.retain_grad().unwrap();
    let notes = events.clone();
    node.register_hook(move |inputs, outputs| {
        notes.note("y.grad_fn posthook grad_inputs", inputs[0].as_ref());
        notes.note("y.grad_fn posthook grad_outputs", outputs[0].as_ref());
        Ok(None)
    });
    x.register_hook(on_tensor("x tensor hook")).unwrap();
    let notes = events.clone();
    let after = move |leaf: &DynTensor| {
        notes.note("x post_accumulate", leaf.grad().as_ref());
        Ok(())
    };
    x.register_post_accumulate_grad_hook(after).unwrap();
    let result = y.backward_with(&num::tensor(DType::F32, &[0.1]), BackwardOptions::new());
    let retained = "y.grad (retain_grad)";
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result).with(retained, &[y.grad()]);
    let measured = measured_events(row).into(row.measured(&[retained]));
    Step::modelled(events.into(ours), measured, Rule::Carried, observed(declared, retained))
}

/// What the hooks of [`observe`] must see: on y the declared dtype, on x its own.
fn observed(declared: Option<GradDType>, retained: &str) -> Outcome {
    let tenth = Num::exactly(DType::F32, &[0.1]);
    let on_y = admitted(Way::Ours, &tenth, declared.unwrap_or(GradDType::Exactly(DType::F16)));
    let on_x = on_y.rounded(DType::F32);
    let events = Events::default();
    for (who, saw) in [
        ("y tensor hook", &on_y),
        ("y.grad_fn prehook", &on_y),
        ("y.grad_fn posthook grad_inputs", &on_x),
        ("y.grad_fn posthook grad_outputs", &on_y),
        ("x tensor hook", &on_x),
        ("x post_accumulate", &on_x),
    ] {
        events.push(who, Some(saw.clone()));
    }
    let mut by_rule = events.into(Outcome::once(on_y.clone(), on_x));
    by_rule.extra.insert(retained.to_owned(), vec![Some(on_y)]);
    by_rule
}

/// `6.order`: one hook after the other, in order of registration within a kind.
pub(crate) fn order(row: &Row) -> Step {
    let (log, events) = (Log::default(), Events::default());
    let x = ones(DType::F32, 1);
    let notes = events.clone();
    let probe = Probe::cast(&log, DType::F16, Some(F32)).backward(move |_, grads| {
        notes.note("backward", None);
        Ok(grads)
    });
    let y = &probe.on(&x).unwrap()[0];
    let before = |who: &'static str| {
        let events = events.clone();
        y.grad_fn().unwrap().register_prehook(move |_| {
            events.note(who, None);
            Ok(None)
        })
    };
    let doubling = |who: &'static str| {
        let events = events.clone();
        let hook = move |grad: &DynTensor| {
            events.note(who, None);
            built_in::doubled(grad).map(Some)
        };
        y.register_hook(hook).unwrap()
    };
    before("prehook1");
    doubling("tensor_hook1");
    y.retain_grad().unwrap();
    doubling("tensor_hook2");
    before("prehook2");
    let notes = events.clone();
    y.grad_fn().unwrap().register_hook(move |_, _| {
        notes.note("posthook1", None);
        Ok(None)
    });
    let notes = events.clone();
    let on_leaf = move |_: &DynTensor| {
        notes.note("leaf_hook", None);
        Ok(None)
    };
    x.register_hook(on_leaf).unwrap();
    let notes = events.clone();
    let after = move |_: &DynTensor| {
        notes.note("leaf_post_acc", None);
        Ok(())
    };
    x.register_post_accumulate_grad_hook(after).unwrap();
    let result = y.backward_with(&num::tensor(DType::F32, &[0.1]), BackwardOptions::new());
    assert_eq!(serde_json::json!(events.names()), row.json["extra"]["order"]);
    let retained = "retained (sees all tensor hooks)";
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result).with(retained, &[y.grad()]);
    // That backward has a log of its own, of names.
    let mut measured = row.measured(&[retained]);
    if measured.received.is_empty() {
        measured.received.clone_from(&ours.received);
    }
    Step::equal(ours, measured)
}

/// `6.return/…`: a hook that returns another gradient.
pub(crate) fn returned(row: &Row) -> Step {
    let log = Log::default();
    let case = row.rest();
    let declared = if case.ends_with("declared_None") { GradDType::Any } else { F32 };
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, DType::F16, Some(declared)).on(&x).unwrap()[0];
    let node = y.grad_fn().unwrap();
    let cast = |dtype| move |grad: &DynTensor| grad.cast(dtype).map(Some);
    let first = |grads: &Gradients| grads[0].clone().unwrap();
    match case {
        "tensor_hook_same_dtype" => drop(y.register_hook(|grad| built_in::doubled(grad).map(Some)).unwrap()),
        "tensor_hook_f64" | "tensor_hook_f64_declared_None" => {
            drop(y.register_hook(cast(DType::F64)).unwrap());
        }
        "tensor_hook_f16" => drop(y.register_hook(cast(DType::F16)).unwrap()),
        "tensor_hook_bf16" => drop(y.register_hook(cast(DType::BF16)).unwrap()),
        "tensor_hook_other_shape" => {
            drop(y.register_hook(|_| Ok(Some(num::full(DType::F32, 2, 1.0)))).unwrap());
        }
        "prehook_f64" => drop(node.register_prehook(move |g| Ok(Some(first(g).cast(DType::F64)?.into())))),
        "prehook_wrong_count" => {
            drop(node.register_prehook(move |g| Ok(Some([first(g), first(g)].into()))));
        }
        "posthook_f64" => drop(node.register_hook(move |g, _| Ok(Some(first(g).cast(DType::F64)?.into())))),
        "posthook_wrong_count" => {
            drop(node.register_hook(move |g, _| Ok(Some([first(g), first(g)].into()))));
        }
        "leaf_hook_f64" => drop(x.register_hook(cast(DType::F64)).unwrap()),
        other => panic!("{other}: no such case"),
    }
    let result = y.backward_with(&num::tensor(DType::F32, &[0.1]), BackwardOptions::new());
    Step::equal(Outcome::of(&log, Some(&x)).failing("backward", result), row.measured(&[]))
}

/// `6.post_accumulate_on_non_leaf`.
pub(crate) fn after_a_non_leaf(row: &Row) -> Step {
    let y = &Probe::cast(&Log::default(), DType::F16, Some(F32)).on(&ones(DType::F32, 1)).unwrap()[0];
    let result = y.register_post_accumulate_grad_hook(|_| Ok(())).map(drop);
    Step::equal(Outcome::default().failing("other", result), row.measured(&[]))
}

/// `6.retain_grad_twice/DECLARED`: a kept gradient adds up over backwards.
pub(crate) fn retained_twice(row: &Row) -> Step {
    let declared = declaration(row.rest());
    let log = Log::default();
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, DType::F16, declared).on(&x).unwrap()[0];
    y.retain_grad().unwrap();
    let seeds = [Num::exactly(DType::F16, &[1.0]), Num::exactly(DType::F32, &[2_f64.powi(-20)])];
    let run = || -> Result<Option<DynTensor>> {
        y.backward_with(&seeds[0].vector(), BackwardOptions::new().retain_graph())?;
        let first = y.grad();
        y.backward_with(&seeds[1].vector(), BackwardOptions::new())?;
        Ok(first)
    };
    let result = run();
    let facts = ["y.grad after first", "y.grad after second"];
    let ours = Outcome::of(&log, Some(&x))
        .with(facts[0], &[result.as_ref().ok().cloned().flatten()])
        .with(facts[1], &[y.grad()])
        .failing("backward", result.map(drop));
    let contract = declared.unwrap_or(GradDType::Exactly(DType::F16));
    let received = seeds.each_ref().map(|seed| admitted(Way::Ours, seed, contract));
    let x_grad = Some(summed(&received.each_ref().map(|num| num.rounded(DType::F32)), F32));
    let total = summed(&received, contract);
    let mut by_rule = Outcome { x_grad, ..Outcome::default() };
    by_rule.extra.insert(facts[0].to_owned(), vec![Some(received[0].clone())]);
    by_rule.extra.insert(facts[1].to_owned(), vec![Some(total)]);
    by_rule.received = received.into_iter().map(|num| vec![Some(num)]).collect();
    Step::modelled(ours, row.measured(&facts), Rule::WidestSum, by_rule)
}
