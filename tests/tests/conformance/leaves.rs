//! Group 7: the gradient dtype of leaves.

use gradpact::{BackwardOptions, DType, DynTensor, GradDType, Result, backward, grad};

use crate::built_in;
use crate::messages;
use crate::num::{self, Num};
use crate::outcome::{Failed, Outcome};
use crate::probe::{Log, Probe, ones};
use crate::row::{Row, grad_dtype};
use crate::rules::{Rule, Way, admitted, carried};
use crate::step::Step;
use crate::sums::summed;
use gradpact_tests::format;

const F16: GradDType = GradDType::Exactly(DType::F16);
const F32: GradDType = GradDType::Exactly(DType::F32);

/// A leaf of ones in `dtype`, whose gradient dtype is set to what the id says: `default`, `None` or a dtype.
fn leaf(dtype: DType, count: usize, declared: &str) -> (DynTensor, GradDType) {
    let x = ones(dtype, count);
    if declared == "default" {
        return (x, GradDType::Exactly(dtype));
    }
    let declared = grad_dtype(declared).unwrap();
    x.set_grad_dtype(declared).unwrap();
    (x, declared)
}

/// `7.effect/LEAF/DECLARED/WAY`.
pub(crate) fn effect(row: &Row) -> Step {
    let [dtype, declared, way] = row.parts()[..] else { panic!("{}", row.id) };
    let dtype = num::dtype(dtype).unwrap();
    let (x, contract) = leaf(dtype, 2, declared);
    let log = Log::default();
    let sent = Num::exactly(DType::F32, &[0.1, 1e-10]);
    let (y, between) = if way.starts_with("leaf") {
        (x.clone(), None)
    } else if way.starts_with('(') {
        (built_in::same(&x).unwrap(), Some((GradDType::Exactly(dtype), carried(dtype, contract))))
    } else {
        (Probe::cast(&log, DType::F16, Some(F32)).on(&x).unwrap()[0].clone(), Some((F32, F32)))
    };
    let result = y.backward_with(&sent.vector(), BackwardOptions::new());
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    let outcome = |way: Way| {
        let edge = between.map(|(torch, ours)| if way == Way::Ours { ours } else { torch });
        let arrived = edge.map_or_else(|| sent.clone(), |edge| admitted(way, &sent, edge));
        let x_grad = Some(admitted(way, &arrived, contract));
        let received = if ours.received.is_empty() { vec![] } else { vec![vec![Some(arrived)]] };
        Outcome { received, x_grad, ..Outcome::default() }
    };
    let measured = row.measured(&[]);
    let (model, by_rule) = (outcome(Way::PyTorch), outcome(Way::Ours));
    Step::modelled(ours, measured, Rule::Carried, by_rule).understood(model)
}

/// `7.twice/DECLARED/FIRST+SECOND`: two backwards into one f16 leaf. With `create_graph`, another pair.
pub(crate) fn twice(row: &Row) -> Step {
    let parts = row.parts();
    let (first, second) = parts[1].split_once('+').unwrap();
    let create_graph = parts.len() > 2;
    let values = if create_graph { [1.0, 2_f64.powi(-11)] } else { [2_f64.powi(-11), 1.0] };
    let first = Num::exactly(num::dtype(first).unwrap(), &[values[0]]);
    let second = Num::exactly(num::dtype(second).unwrap(), &[values[1]]);
    let (x, contract) = leaf(DType::F16, 1, parts[0]);
    let run = || -> Result<Option<DynTensor>> {
        x.backward_with(&first.vector(), BackwardOptions::new())?;
        let after_first = x.grad();
        let options = BackwardOptions::new();
        x.backward_with(&second.vector(), if create_graph { options.create_graph() } else { options })?;
        Ok(after_first)
    };
    let result = run();
    let mut ours = Outcome::of(&Log::default(), Some(&x));
    let mut by_rule = Outcome::default();
    let stored = admitted(Way::Ours, &first, contract);
    let facts: &[&str] = if create_graph { &[] } else { &["after_first"] };
    if !create_graph {
        by_rule.extra.insert("after_first".to_owned(), vec![Some(stored.clone())]);
        ours = ours.with("after_first", &[result.as_ref().ok().cloned().flatten()]);
    }
    let ours = ours.failing("backward", result.map(drop));
    by_rule.x_grad = Some(summed(&[stored, second], contract));
    let rule = if contract == GradDType::Any { Rule::WidestSum } else { Rule::WideSum };
    Step::modelled(ours, row.measured(facts), rule, by_rule)
}

/// `7.int_grad_dtype_backward`.
pub(crate) fn integer(row: &Row) -> Step {
    let x = ones(DType::F32, 2);
    let result = x.set_grad_dtype(GradDType::Exactly(DType::I32));
    let ours = Outcome::of(&Log::default(), Some(&x)).failing("forward", result);
    let by_rule = Outcome { failed: Some(Failed::measured("forward")), ..Outcome::default() };
    Step::modelled(ours, row.measured(&[]), Rule::DeclaredNotFloat, by_rule)
}

/// `7.changed_after_graph_was_built`.
pub(crate) fn changed_late(row: &Row) -> Step {
    let x = ones(DType::F32, 2);
    let y = built_in::same(&x).unwrap();
    x.set_grad_dtype(F16).unwrap();
    let result = y.backward_with(&num::tensor(DType::F32, &[0.1, 0.2]), BackwardOptions::new());
    Step::equal(Outcome::of(&Log::default(), Some(&x)).failing("backward", result), row.measured(&[]))
}

/// `7.non_leaf`: what PyTorch refuses to tell.
pub(crate) fn non_leaf(row: &Row) -> Step {
    let x = ones(DType::F32, 2);
    let y = built_in::same(&x).unwrap();
    assert_eq!(y.grad_dtype(), Some(F32));
    let refused = y.set_grad_dtype(F16).unwrap_err();
    messages::check("7.non_leaf", &Failed::ours("other", &refused)).unwrap();
    let z = &Probe::cast(&Log::default(), DType::F16, Some(F32)).on(&x).unwrap()[0];
    assert_eq!(z.grad_dtype(), Some(F32));
    for name in ["read non-leaf", "read Function output", "read view of leaf"] {
        let error = &row.json["extra"][name]["error"]["message"];
        assert_eq!(error, "grad_dtype can only be accessed on leaf tensors.");
    }
    let measured = Outcome { failed: Some(Failed::measured("other")), ..Outcome::default() };
    Step::modelled(Outcome::default(), measured, Rule::Readable, Outcome::default())
}

/// `7.copies`, of which all but `detach` is Python's and its modules': a detached leaf is as any tensor of its dtype.
pub(crate) fn copies(row: &Row) -> Step {
    let (x, _) = leaf(DType::F32, 2, "float16");
    let told = |x: &DynTensor| x.grad_dtype().and_then(GradDType::dtype).map_or("none", num::name);
    assert_eq!((told(&x), told(&x.detach().requiring_grad().unwrap())), ("float16", "float32"));
    let ours = Outcome::default().telling("detach()", told(&x.detach()));
    Step::equal(ours, Outcome::default().telling("detach()", row.told("detach()").unwrap()))
}

/// `7.autograd_grad_of_leaf`: `grad` gives what the leaf would have kept.
pub(crate) fn grad_of(row: &Row) -> Step {
    let facts =
        ["grad_dtype f16, via x*1", "grad_dtype f16, grad(x, x)", "grad_dtype None, via F declared f64"];
    let seed = num::tensor(DType::F32, &[0.1, 0.2]);
    let log = Log::default();
    let of = |y: &DynTensor, x: &DynTensor| {
        grad(&[(y, Some(&seed))], &[x], BackwardOptions::new()).unwrap().remove(0)
    };
    let (x, _) = leaf(DType::F32, 2, "float16");
    let through = of(&built_in::same(&x).unwrap(), &x);
    let itself = of(&x, &x);
    let (x, _) = leaf(DType::F32, 2, "None");
    let declared = GradDType::Exactly(DType::F64);
    let last = of(&Probe::cast(&log, DType::F16, Some(declared)).on(&x).unwrap()[0], &x);
    let ours =
        Outcome::of(&log, None).with(facts[0], &[through]).with(facts[1], &[itself]).with(facts[2], &[last]);
    Step::equal(ours, row.measured(&facts))
}

/// `7.two_consumers_of_leaf`: an f16 leaf whose gradient is kept, and summed, in f32.
pub(crate) fn two_consumers(row: &Row) -> Step {
    let log = Log::default();
    let (x, _) = leaf(DType::F16, 1, "float32");
    let cast = || Probe::cast(&log, DType::F16, Some(F32)).on(&x).unwrap()[0].clone();
    let (a, b) = (cast(), cast());
    let seeds = [1.0, 2_f64.powi(-20)].map(|seed| num::tensor(DType::F32, &[seed]));
    let result = backward(&[(&a, Some(&seeds[0])), (&b, Some(&seeds[1]))], BackwardOptions::new());
    assert_eq!(format::sum_in(DType::F32, &[2_f64.powi(-20), 1.0]), 1.0 + 2_f64.powi(-20));
    Step::equal(Outcome::of(&log, Some(&x)).failing("backward", result), row.measured(&[]))
}
