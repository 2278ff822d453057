//! Groups 8 and 9: derivatives of derivatives, and derivatives with respect to what is not a leaf.

use std::sync::{Arc, Mutex};

use gradpact::autograd::Origin;
use gradpact::autograd::grad_mode::is_enabled;
use gradpact::{BackwardOptions, Cpu, DType, DynTensor, GradDType, apply, grad};

use crate::built_in;
use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::probe::{Log, Probe, ones};
use crate::row::{Row, declaration};
use crate::rules::{Rule, Way, admitted, carried, convert};
use crate::step::Step;

const F16: GradDType = GradDType::Exactly(DType::F16);
const F32: GradDType = GradDType::Exactly(DType::F32);

fn one_grad(y: &DynTensor, x: &DynTensor, seed: &DynTensor, options: BackwardOptions) -> DynTensor {
    grad(&[(y, Some(seed))], &[x], options).unwrap().remove(0).unwrap()
}

/// The graph of a gradient as the cases write it: nothing of a leaf, else names of nodes with what they lead to.
fn graph(tensor: &DynTensor) -> String {
    fn of(origin: &Origin<Cpu>) -> String {
        let Some(edge) = origin.edge() else { return "None".to_owned() };
        let next: Vec<_> = edge.node().next_edges().iter().map(of).collect();
        format!("{}({})", edge.node().name(), next.join(","))
    }
    if tensor.is_leaf() { "None".to_owned() } else { of(tensor.origin()) }
}

/// A measured graph, with our name for a conversion.
fn measured_graph(graph: &str) -> String {
    graph.replace("torch::autograd::", "").replace("ToCopyBackward0", "Cast")
}

/// What is told of a received gradient: that it can be differentiated, that this is recorded, and its graph.
const IN_BACKWARD: &str = "in_backward";

/// `8.double/DECLARED/x_DTYPE`: first and second derivatives of x² at 3.
pub(crate) fn double(row: &Row) -> Step {
    let [declared, x] = row.parts()[..] else { panic!("{}", row.id) };
    let (declared, x_dtype) = (declaration(declared), num::dtype(x.trim_start_matches("x_")).unwrap());
    let (log, notes) = (Log::default(), Arc::new(Mutex::new(String::new())));
    let x = num::tensor(x_dtype, &[3.0]).requiring_grad().unwrap();
    let v = num::tensor(DType::F32, &[0.1]).requiring_grad().unwrap();
    let y = &square(&log, &notes, declared, false).on(&x).unwrap()[0];
    let gx = one_grad(y, &x, &v, BackwardOptions::new().create_graph());
    let second = grad(&[(&gx, None)], &[&x, &v], BackwardOptions::new().allow_unused()).unwrap();
    let ours = Outcome::of(&log, None)
        .with(DOUBLE[0], &[Some(gx)])
        .with(DOUBLE[1], &[second[0].clone()])
        .with(DOUBLE[2], &[second[1].clone()])
        .telling(IN_BACKWARD, notes.lock().unwrap().clone());
    let measured = row.measured(&DOUBLE).telling(IN_BACKWARD, in_backward(row));
    Step::modelled(ours, measured, Rule::Carried, doubled(declared, x_dtype))
}

/// The facts of [`double`].
const DOUBLE: [&str; 3] = ["first_order gx", "second_order wrt x", "second_order wrt v"];

/// What must come of [`double`]: `2x·g` in the dtype of g, then in that of x; its derivatives `2g` in that of x, and `2x`.
fn doubled(declared: Option<GradDType>, x: DType) -> Outcome {
    let g = admitted(Way::Ours, &Num::exactly(DType::F32, &[0.1]), declared.unwrap_or(F16));
    let times = |factor: f64, dtype| Num::exactly(dtype, &[factor * g.values()[0]]);
    let facts = [times(6.0, g.dtype).rounded(x), times(2.0, x), Num::exactly(DType::F32, &[6.0])];
    let graph = if g.dtype == DType::F32 { "None" } else { "Cast(AccumulateGrad())" };
    let mut outcome = Outcome { received: vec![vec![Some(g)]], ..Outcome::default() };
    for (name, fact) in DOUBLE.into_iter().zip(facts) {
        outcome.extra.insert(name.to_owned(), vec![Some(fact)]);
    }
    outcome.telling(IN_BACKWARD, format!("true true {graph}"))
}

/// x² in f16, perhaps marked as differentiable once; its backward notes the facts of [`IN_BACKWARD`].
fn square(log: &Log, notes: &Arc<Mutex<String>>, declared: Option<GradDType>, once: bool) -> Probe {
    let square = Probe::new(log, move |ctx, inputs| {
        let x = inputs.get(0)?;
        ctx.save_for_backward(x);
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        if once {
            ctx.mark_once_differentiable();
        }
        Ok(built_in::mul(x, x)?.cast(DType::F16)?.into())
    });
    let notes = Arc::clone(notes);
    square.backward(move |ctx, grads| {
        let g = grads[0].as_ref().unwrap();
        *notes.lock().unwrap() = format!("{} {} {}", g.requires_grad(), is_enabled(), graph(g));
        let x = ctx.saved_tensor(0)?.cast(g.dtype())?;
        Ok(built_in::mul(&built_in::add(&x, &x)?, g)?.into())
    })
}

/// What a measured case tells of its backward.
fn in_backward(row: &Row) -> String {
    let told = &row.json["extra"][IN_BACKWARD][0];
    let flag = |name: &str| told[name].as_bool().unwrap_or_default();
    let graph = measured_graph(told["g.grad_fn"].as_str().unwrap_or_default());
    format!("{} {} {graph}", flag("g.requires_grad"), flag("grad_enabled"))
}

/// `8.once_differentiable/DECLARED`: the first derivative of x² at 3, and an attempt at the second; or with a gradient that
/// requires none, declared f32.
pub(crate) fn once(row: &Row) -> Step {
    let (log, notes) = (Log::default(), Arc::new(Mutex::new(String::new())));
    let plain = row.rest() == "grad_output_without_requires_grad";
    let declared = if plain { Some(F32) } else { declaration(row.rest()) };
    let x = num::tensor(DType::F32, &[3.0]).requiring_grad().unwrap();
    let v = num::tensor(DType::F32, &[0.1]);
    let v = if plain { v } else { v.requiring_grad().unwrap() };
    let y = &square(&log, &notes, declared, true).on(&x).unwrap()[0];
    let gx = one_grad(y, &x, &v, BackwardOptions::new().create_graph());
    let result = gx.backward();
    let ours = Outcome::of(&log, None).telling(IN_BACKWARD, notes.lock().unwrap().clone());
    let ours = ours.failing("second backward", result);
    if !plain {
        let measured = row.measured(&["gx"]).telling(IN_BACKWARD, in_backward(row));
        return Step::equal(ours.with("gx", &[Some(gx)]), measured);
    }
    let fact = "gx.requires_grad";
    let measured = row.measured(&[]).telling(IN_BACKWARD, in_backward(row));
    // It depends on x, so its derivative is not nothing: it is unknown.
    let by_rule = measured.clone().telling(fact, "true");
    let measured = measured.telling(fact, row.told(fact).unwrap());
    Step::modelled(ours.telling(fact, gx.requires_grad().to_string()), measured, Rule::OnceIsSaid, by_rule)
}

/// `8.cast_is_differentiable/DECLARED`: the second derivative goes through the conversions of the first.
pub(crate) fn cast_is_differentiable(row: &Row) -> Step {
    let declared = declaration(row.rest());
    let (log, notes) = (Log::default(), Arc::new(Mutex::new(String::new())));
    let x = num::tensor(DType::F32, &[3.0]).requiring_grad().unwrap();
    let v = num::tensor(DType::F32, &[0.1]).requiring_grad().unwrap();
    let seen = Arc::clone(&notes);
    let probe = Probe::cast(&log, DType::F16, declared).backward(move |_, grads| {
        *seen.lock().unwrap() = graph(grads[0].as_ref().unwrap());
        Ok(grads)
    });
    let y = &probe.on(&x).unwrap()[0];
    let gx = one_grad(y, &x, &v, BackwardOptions::new().create_graph());
    let seed = num::tensor(DType::F32, &[1e-10]);
    let dv = one_grad(&gx, &v, &seed, BackwardOptions::new());
    let (fact, graphs) = ("d(gx*1e-10)/dv", ["graph of received g", "graph of gx"]);
    let ours = Outcome::of(&log, None).with(fact, &[Some(dv)]);
    let ours = ours.telling(graphs[0], notes.lock().unwrap().clone()).telling(graphs[1], graph(&gx));
    let received = admitted(Way::Ours, &Num::exactly(DType::F32, &[0.1]), declared.unwrap_or(F16));
    // A conversion to what was declared, and one back to the dtype of x.
    let converted = received.dtype != DType::F32;
    let told =
        if converted { ["Cast(AccumulateGrad())", "Cast(Cast(AccumulateGrad()))"] } else { ["None"; 2] };
    let mut by_rule = Outcome { received: vec![vec![Some(received)]], ..Outcome::default() };
    // A conversion carries the gradient dtype of its input, f32, also the one that admission made.
    by_rule.extra.insert(fact.to_owned(), vec![Some(Num::exactly(DType::F32, &[1e-10]))]);
    let mut measured = row.measured(&[fact]);
    for (name, told) in graphs.into_iter().zip(told) {
        by_rule = by_rule.telling(name, told);
        measured = measured.telling(name, measured_graph(&row.told(name).unwrap_or_default()));
    }
    Step::modelled(ours, measured, Rule::Carried, by_rule)
}

/// `9.nonleaf/DECLARED`: gradients with respect to the output y of one Function, through another and through operations.
pub(crate) fn nonleaf(row: &Row) -> Step {
    let declared = declaration(row.rest());
    let (log, z_log) = (Log::default(), Log::default());
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, DType::F16, declared).on(&x).unwrap()[0];
    let z = &apply(Probe::cast(&z_log, DType::F16, Some(F32)), &[y]).unwrap()[0];
    let g = num::tensor(DType::F32, &[0.1]);
    let keep = BackwardOptions::new().retain_graph();
    let twice = |t: &DynTensor| built_in::add(t, t).unwrap();
    let both = grad(&[(z, Some(&g))], &[y, &x], keep).unwrap();
    let unused = grad(&[(&twice(&ones(DType::F32, 1)), Some(&g))], &[y], keep.materialize_grads()).unwrap();
    let facts = [
        "grad(z, y)",
        "grad(y, y)",
        "grad(y*2, y)",
        "grad(y.float()*2, y)",
        "grad(z, (y, x))",
        "unused y, materialize_grads=True",
    ];
    let ours = Outcome::of(&log, None)
        .with(facts[0], &[Some(one_grad(z, y, &g, keep))])
        .with(facts[1], &[Some(one_grad(y, y, &g, keep))])
        .with(facts[2], &[Some(one_grad(&built_in::doubled(y).unwrap(), y, &g, keep))])
        .with(
            facts[3],
            &[Some(one_grad(&built_in::doubled(&y.cast(DType::F32).unwrap()).unwrap(), y, &g, keep))],
        )
        .with(facts[4], &both)
        .with(facts[5], &unused);

    let contract = declared.unwrap_or(F16);
    let outcome = |way: Way| {
        let tenth = Num::exactly(DType::F32, &[0.1]);
        let received = admitted(way, &tenth, contract);
        let double = |num: &Num| Num::exactly(num.dtype, &[2.0 * num.values()[0]]);
        let (through_y, through_cast) = match way {
            Way::PyTorch => {
                (double(&convert(way, &tenth, DType::F16)), convert(way, &double(&tenth), DType::F16))
            }
            Way::Ours => (
                double(&admitted(way, &tenth, carried(DType::F16, contract))),
                double(&admitted(way, &tenth, carried(DType::F32, contract))),
            ),
        };
        let zeros = match way {
            Way::PyTorch => DType::F16,
            Way::Ours => contract.dtype().unwrap_or(DType::F16),
        };
        let answers = [
            vec![received.clone()],
            vec![received.clone()],
            vec![admitted(way, &through_y, contract)],
            vec![admitted(way, &through_cast, contract)],
            vec![received.clone(), received.rounded(DType::F32)],
            vec![Num::exactly(zeros, &[0.0])],
        ];
        let mut outcome = Outcome { received: vec![vec![Some(received)]], ..Outcome::default() };
        for (fact, answer) in facts.iter().zip(answers) {
            outcome.extra.insert((*fact).to_owned(), answer.into_iter().map(Some).collect());
        }
        outcome
    };
    let mut measured = row.measured(&facts);
    // What follows there is `backward(inputs=…)` and gradient edges, which we have not.
    measured.received.truncate(1);
    let rule = if declared.is_none() { Rule::DeclaredZeros } else { Rule::Carried };
    Step::modelled(ours, measured, rule, outcome(Way::Ours)).understood(outcome(Way::PyTorch))
}
