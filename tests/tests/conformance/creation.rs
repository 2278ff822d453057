//! Group 11: what a hook for the creation of nodes is shown, and what it may do.

use std::cell::RefCell;
use std::rc::Rc;

use gradpact::autograd::{NodeRef, node_creation_hook};
use gradpact::{
    BackwardOptions, Context, Cpu, DType, DynTensor, Error, GradDType, Inputs, Outputs, Result, grad, no_grad,
};

use crate::built_in;
use crate::hooks::Events;
use crate::messages;
use crate::num::{self, Num};
use crate::outcome::{Failed, Outcome};
use crate::probe::{Log, Probe, ones};
use crate::row::{Row, declaration};
use crate::rules::{Rule, Way, admitted};
use crate::step::Step;

const F32: GradDType = GradDType::Exactly(DType::F32);

/// `x²` stored in f16, as the cases write it; its backward is `2·g·x`.
fn square(log: &Log, declared: Option<GradDType>) -> Probe {
    let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| -> Result<Outputs> {
        let x = inputs.get(0)?;
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        ctx.save_for_backward(x);
        Ok(built_in::mul(x, x)?.cast(DType::F16)?.into())
    };
    Probe::new(log, forward).backward(|ctx, grads| {
        let twice = built_in::doubled(grads[0].as_ref().unwrap())?;
        Ok(built_in::mul(&twice, ctx.saved_tensor(0)?)?.into())
    })
}

/// What hooks on this thread noted.
type Notes = Rc<RefCell<Vec<String>>>;

/// The nodes that `body` creates, as `of` writes them.
fn created<R>(of: fn(&NodeRef<Cpu>) -> String, body: impl FnOnce() -> R) -> (String, R) {
    let notes = Notes::default();
    let shared = Rc::clone(&notes);
    let note = move |node: &NodeRef<Cpu>| {
        shared.borrow_mut().push(of(node));
        Ok(())
    };
    let result = node_creation_hook(note, body);
    (notes.take().join(", "), result)
}

/// Name, number of next edges, and the storage dtypes of what it is the gradient of.
fn described(node: &NodeRef<Cpu>) -> String {
    let dtypes: Vec<_> = node.inputs().iter().map(|input| num::name(input.dtype())).collect();
    format!("{} {} {}", node.name(), node.next_edges().len(), dtypes.join(" "))
}

fn named(node: &NodeRef<Cpu>) -> String {
    node.name().to_owned()
}

/// A measured name of a node, without what each framework adds to it.
fn plain(name: &str) -> &str {
    name.trim_start_matches("torch::autograd::").trim_end_matches('0').trim_end_matches("Backward")
}

/// A measured list of names, or of names with the number of next functions and the dtypes.
fn measured_list(row: &Row, name: &str) -> String {
    let entry = |entry: &serde_json::Value| match entry.as_array() {
        Some(parts) => {
            let dtypes: Vec<_> = parts[2].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
            format!("{} {} {}", plain(parts[0].as_str().unwrap()), parts[1], dtypes.join(" "))
        }
        None => plain(entry.as_str().unwrap()).to_owned(),
    };
    let list = row.json["extra"][name].as_array().unwrap();
    list.iter().map(entry).collect::<Vec<_>>().join(", ")
}

const FORWARD: &str = "forward: name, n next_functions, input metadata dtypes";
const UNRECORDED: &str = "no_grad / no requires_grad";
const LEAF: &str = "AccumulateGrad fires once while cached";
const OUTPUTS: &str = "multi-output node fires once";
const METADATA: &str = "node.metadata written by hook";

/// The facts that are lists of nodes, and those of them that depend on when the node of a leaf is created.
const LISTS: [&str; 7] =
    [FORWARD, UNRECORDED, "plain backward", "create_graph backward", LEAF, "other thread", "nesting order"];

/// What is not compared: in-place operations, what is no function, and a scope that cannot be left without being entered.
const LEFT_OUT: [&str; 3] = ["in-place, in-place on view", "not callable", "__exit__ without __enter__"];

/// `11.node_creation_hook/basics` and `/registering_hooks`, the latter of the families with `/DECLARED`.
pub(crate) fn replay(row: &Row) -> Step {
    match row.parts()[..] {
        ["basics"] => basics(row),
        ["registering_hooks"] => registering(row, Some(F32)),
        ["registering_hooks", declared] => registering(row, declaration(declared)),
        _ => panic!("{}: no such case", row.id),
    }
}

fn basics(row: &Row) -> Step {
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let mut ours = lists(&log, &x).into_iter().fold(Outcome::default(), |ours, (n, l)| ours.telling(n, l));
    let (several, _) = created(named, || {
        let forward = |_: &mut Context, inputs: &Inputs<'_>| {
            let x = inputs.get(0)?;
            Ok([x.narrow(0, 0, 1)?, x.narrow(0, 1, 1)?].into())
        };
        Probe::new(&Log::default(), forward).on(&x).unwrap()
    });
    ours = ours.telling(OUTPUTS, several.split(", ").count().to_string());
    for (name, failed) in failures(&x) {
        messages::check(&format!("{}/{name}", row.id), &Failed::ours("other", &failed)).unwrap();
        ours = ours.telling(name, "error");
    }
    let attach = |node: &NodeRef<Cpu>| {
        node.set_metadata("k", 1_i64);
        Ok(())
    };
    let y = node_creation_hook(attach, || square(&Log::default(), Some(F32)).on(&x)).unwrap()[0].clone();
    ours = ours.telling(METADATA, y.grad_fn().unwrap().metadata::<i64>("k").unwrap().to_string());
    ours.received = log.calls();

    let mut measured = row.measured(&[]);
    for name in LISTS {
        measured = measured.telling(name, measured_list(row, name));
    }
    measured = measured.telling(OUTPUTS, row.json["extra"][OUTPUTS].as_array().unwrap().len().to_string());
    for name in ["hook raises", "hook creates a node"] {
        measured = measured.telling(name, row.told(name).unwrap());
    }
    measured =
        measured.telling(METADATA, row.told(METADATA).unwrap().replace(['{', '}'], "").replace("'k': ", ""));
    all_told(row, &measured);

    // All is the same, but that the node of a leaf is there already.
    let mut by_rule = measured.clone();
    for name in [FORWARD, LEAF] {
        let (leaf, rest) = measured.told[name].split_once(", ").unwrap();
        assert!(leaf.starts_with("AccumulateGrad"));
        by_rule = by_rule.telling(name, rest);
    }
    Step::modelled(ours, measured, Rule::LeafsNode, by_rule)
}

/// Every fact is compared or left out.
fn all_told(row: &Row, measured: &Outcome) {
    for name in row.json["extra"].as_object().unwrap().keys() {
        let known = measured.told.contains_key(name) || LEFT_OUT.contains(&&**name);
        assert!(known, "{}: {name}: neither compared nor left out", row.id);
    }
}

/// The nodes of each region of the case.
fn lists(log: &Log, x: &DynTensor) -> Vec<(&'static str, String)> {
    let two = |dtype| num::full(dtype, 2, 2.0);
    let times = |x: &DynTensor| built_in::mul(x, &two(x.dtype())).unwrap();
    let (forward, z) = created(described, || {
        let y = square(log, Some(F32)).on(x).unwrap()[0].clone();
        built_in::sum(&times(&y)).unwrap()
    });
    let (unrecorded, _) = created(described, || {
        no_grad(|| square(log, Some(F32)).on(x)).unwrap();
        square(log, Some(F32)).on(&two(DType::F32)).unwrap();
    });
    let differentiate = |options| grad(&[(&z, None)], &[x], options).unwrap();
    let (plain, _) = created(described, || differentiate(BackwardOptions::new().retain_graph()));
    let (recorded, _) = created(named, || differentiate(BackwardOptions::new().create_graph()));
    let w = ones(DType::F32, 2);
    let (leaf, _) = created(named, || (times(&w), times(&w)));
    let elsewhere = x.clone();
    let other = move || drop(built_in::same(&elsewhere).unwrap());
    let (thread, _) = created(named, || std::thread::spawn(other).join().unwrap());
    let lists = [forward, unrecorded, plain, recorded, leaf, thread, nested()];
    LISTS.into_iter().zip(lists).collect()
}

/// Which of two nested scopes is shown the node of a new leaf first, and that of an operation on it.
fn nested() -> String {
    let order = Notes::default();
    let note = |who: &'static str| {
        let order = Rc::clone(&order);
        move |_: &NodeRef<Cpu>| {
            order.borrow_mut().push(who.to_owned());
            Ok(())
        }
    };
    let inner = note("inner");
    node_creation_hook(note("outer"), || {
        node_creation_hook(inner, || drop(built_in::same(&ones(DType::F32, 1)).unwrap()));
    });
    order.take().join(", ")
}

/// The errors of an operation whose node is shown to a hook that fails, or that creates a node.
fn failures(x: &DynTensor) -> [(&'static str, Error); 2] {
    let fails = |_: &NodeRef<Cpu>| Err(Error::custom("boom"));
    let raised = node_creation_hook(fails, || built_in::doubled(x)).unwrap_err();
    let again = x.clone();
    let creates = move |_: &NodeRef<Cpu>| built_in::mul(&again, &again).map(drop);
    let created = node_creation_hook(creates, || built_in::doubled(x)).unwrap_err();
    built_in::doubled(x)
        .unwrap()
        .backward_with(&num::full(DType::F32, 2, 0.0), BackwardOptions::new())
        .unwrap();
    [("hook raises", raised), ("hook creates a node", created)]
}

/// Hooks that a creation hook registers on every node it is shown see what hooks registered later would.
///
/// The leaf is made inside the scope, so that its node is shown here as it is in PyTorch, where it is made at first use.
fn registering(row: &Row, declared: Option<GradDType>) -> Step {
    let (log, events) = (Log::default(), Events::default());
    let notes = events.clone();
    let register = move |node: &NodeRef<Cpu>| {
        let (before, after, name) = (notes.clone(), notes.clone(), node.name());
        node.register_prehook(move |grads| {
            before.note(&format!("{name} pre"), grads[0].as_ref());
            Ok(None)
        });
        node.register_hook(move |inputs, _| {
            after.note(&format!("{name} post"), inputs.first().and_then(Option::as_ref));
            Ok(None)
        });
        Ok(())
    };
    let run = || {
        let x = ones(DType::F32, 2);
        (square(&log, declared).on(&x).unwrap()[0].clone(), x)
    };
    let (y, x) = node_creation_hook(register, run);
    let seed = Num::exactly(DType::F32, &[0.1, 0.2]);
    let result = y.backward_with(&seed.vector(), BackwardOptions::new());
    let ours = events.into(Outcome::of(&log, Some(&x)).failing("backward", result));

    let received = admitted(Way::Ours, &seed, declared.unwrap_or(GradDType::Exactly(DType::F16)));
    let values: Vec<f64> = received.values().iter().map(|value| 2.0 * value).collect();
    let x_grad = Num::exactly(DType::F32, &Num::exactly(received.dtype, &values).values());
    let seen = Events::default();
    for (who, saw) in [
        ("F pre", Some(received.clone())),
        ("F post", Some(x_grad.clone())),
        ("AccumulateGrad pre", Some(x_grad.clone())),
        ("AccumulateGrad post", None),
    ] {
        seen.push(who, saw);
    }
    let by_rule = seen.into(Outcome::once(received, x_grad));
    let measured = events_of(row).into(row.measured(&[]));
    Step::modelled(ours, measured, Rule::LeafsNode, by_rule)
}

/// The measured events: whose hook, which, and what it saw.
fn events_of(row: &Row) -> Events {
    let events = Events::default();
    for event in row.json["extra"]["events"].as_array().into_iter().flatten() {
        let who = format!("{} {}", plain(event[0].as_str().unwrap()), event[1].as_str().unwrap());
        events.push(&who, event[2]["dtype"].as_str().and_then(|dtype| Num::measured(dtype, &event[2])));
    }
    events
}
