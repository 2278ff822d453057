//! Group 1: every output dtype, declaration and incoming dtype, through every way into a Function.

use gradpact::{BackwardOptions, DType, DynTensor, GradDType, Result, Shape, apply, backward};

use crate::built_in;
use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::probe::{Giver, Log, Probe, ones};
use crate::row::{Row, declaration};
use crate::rules::{Rule, Way, admitted, carried};
use crate::step::Step;

/// A gradient on its way into a Function, through the edges of what is in between.
struct Route {
    /// What is sent in PyTorch.
    sent: Num,
    /// What is sent here, where the loss itself carries a gradient dtype.
    carried: Option<Num>,
    /// What the operation in between makes of it in PyTorch, and here.
    between: Option<(GradDType, GradDType)>,
    /// What the Function asks for.
    asked: GradDType,
    /// The leaf's dtype.
    leaf: DType,
}

impl Route {
    fn received(&self, way: Way, carry: Way) -> Num {
        let between = self.between.map(|(torch, ours)| if carry == Way::Ours { ours } else { torch });
        let sent = self.carried.as_ref().filter(|_| carry == Way::Ours).unwrap_or(&self.sent);
        let arrived = between.map_or_else(|| sent.clone(), |edge| admitted(way, sent, edge));
        admitted(way, &arrived, self.asked)
    }

    fn outcome(&self, way: Way, carry: Way) -> Outcome {
        let received = self.received(way, carry);
        let x_grad = admitted(way, &received, GradDType::Exactly(self.leaf));
        Outcome::once(received, x_grad)
    }

    /// The case as it went, beside both models of it.
    fn step(&self, row: &Row, ours: Outcome) -> Step {
        let by_rule = self.outcome(Way::Ours, Way::Ours);
        let rule =
            if self.outcome(Way::Ours, Way::PyTorch) == by_rule { Rule::RoundedOnce } else { Rule::Carried };
        let measured = row.measured(&[]);
        let model = self.outcome(Way::PyTorch, Way::PyTorch);
        Step::modelled(ours, measured, rule, by_rule).understood(model)
    }
}

/// `1.direct`, `1.clone` and `1.function`: `/OUT/DECLARED/INCOMING`.
pub fn entry(row: &Row) -> Step {
    let [out, declared, _] = row.parts()[..] else { panic!("{}", row.id) };
    let (out, declared) = (num::dtype(out).unwrap(), declaration(declared));
    let sent = row.incoming();
    let log = Log::default();
    let x = ones(DType::F32, sent.bits.len());
    let y = &Probe::cast(&log, out, declared).on(&x).unwrap()[0];
    let asked = declared.unwrap_or(GradDType::Exactly(out));
    let (result, between) = match row.id.split_once('/').unwrap().0 {
        "1.direct" => (y.backward_with(&sent.vector(), BackwardOptions::new()), None),
        "1.clone" => {
            let same = built_in::same(y).unwrap();
            assert_eq!(same.dtype(), out);
            let result = same.backward_with(&sent.vector(), BackwardOptions::new());
            (result, Some((GradDType::Exactly(out), carried(out, asked))))
        }
        _ => (apply(Giver(Some(sent.vector())), &[y]).and_then(|scalar| scalar[0].backward()), None),
    };
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    Route { sent, carried: None, between, asked, leaf: DType::F32 }.step(row, ours)
}

/// `1.float_sum/OUT/DECLARED`: a conversion before the Function sees the gradient.
pub fn float_sum(row: &Row) -> Step {
    let [out, declared] = row.parts()[..] else { panic!("{}", row.id) };
    let (out, declared) = (num::dtype(out).unwrap(), declaration(declared));
    let log = Log::default();
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, out, declared).on(&x).unwrap()[0];
    let loss = y.cast(DType::F32).and_then(|y| built_in::scaled(&built_in::sum(&y)?, 1e-10));
    let result = loss.and_then(|loss| loss.backward());
    let asked = declared.unwrap_or(GradDType::Exactly(out));
    let sent = |dtype| Num::exactly(dtype, &[1e-10]);
    let loss = carried(DType::F32, asked);
    let between = Some((GradDType::Exactly(out), loss));
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    // The seed has the dtype that the loss asks for; where that is any, the loss's own.
    let carried = Some(sent(loss.dtype().unwrap_or(DType::F32)));
    Route { sent: sent(DType::F32), carried, between, asked, leaf: DType::F32 }.step(row, ours)
}

/// `1.down/OPERATION/DECLARED`: `OPERATION(y) * 1e-10` for an f16 y of [1, 2].
pub fn down(row: &Row) -> Step {
    let (operation, declared) = row.rest().rsplit_once('/').unwrap();
    let Some(down) = built_in::down(operation) else {
        return Step::left("an operation that we have no twin of");
    };
    let declared = declaration(declared);
    let log = Log::default();
    let x = num::tensor(DType::F32, &[1.0, 2.0]).requiring_grad().unwrap();
    let y = &Probe::cast(&log, DType::F16, declared).on(&x).unwrap()[0];
    let result = (down.apply)(y).and_then(|loss| built_in::scaled(&loss, 1e-10)?.backward());
    let asked = declared.unwrap_or(GradDType::Exactly(DType::F16));
    // The factor is rounded to the dtype of the gradient of the loss; the rest is exact, or nearly.
    let sent = |dtype| {
        let factor = Num::exactly(dtype, &[1e-10]).values()[0];
        Num::exactly(dtype, &down.gradient.map(|value| value * factor))
    };
    let loss = carried(down.loss, asked).dtype().unwrap_or(down.loss);
    let between = down.rounds.then_some((GradDType::Exactly(DType::F16), GradDType::Any));
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    let way = Route { sent: sent(down.dtype), carried: Some(sent(loss)), between, asked, leaf: DType::F32 };
    if down.exact {
        return way.step(row, ours);
    }
    let by_rule = way.outcome(Way::Ours, Way::Ours);
    let close = built_in::close(&ours, &by_rule);
    let by_rule = if close { ours.clone() } else { by_rule };
    Step::modelled(ours, row.measured(&[]), Rule::Carried, by_rule)
}

/// `1.chain/FIRST/SECOND/MODE`: two Functions stored in f16, one after the other.
pub fn chain(row: &Row) -> Step {
    let (first, rest) = row.rest().split_once('/').unwrap();
    let (second, mode) = rest.split_once('/').unwrap();
    let (first, second) = (declaration(first), declaration(second));
    let (log, outer_log) = (Log::default(), Log::default());
    let x = ones(DType::F32, 1);
    let y1 = &Probe::cast(&log, DType::F16, first).on(&x).unwrap()[0];
    let y2 = &Probe::cast(&outer_log, DType::F16, second).on(y1).unwrap()[0];
    let sent = Num::exactly(DType::F32, &[1e-10]);
    let run = || -> Result<()> {
        if mode == "direct" {
            return y2.backward_with(&sent.vector(), BackwardOptions::new());
        }
        built_in::scaled(&built_in::sum(&y2.cast(DType::F32)?)?, 1e-10)?.backward()
    };
    let result = run();
    let asked = |declared: Option<GradDType>| declared.unwrap_or(GradDType::Exactly(DType::F16));
    let outcome = |way| {
        let between = match (mode, way) {
            ("direct", _) => GradDType::Any,
            (_, Way::PyTorch) => GradDType::Exactly(DType::F16),
            (_, Way::Ours) => carried(DType::F32, asked(second)),
        };
        // Where the loss carries f64, so does its seed, and the factor is not rounded to f32 first.
        let sent = match (mode, way, between.dtype()) {
            ("direct", ..) | (_, Way::PyTorch, _) | (.., None) => sent.clone(),
            (.., Some(dtype)) => Num::exactly(dtype, &[1e-10]),
        };
        let outer = admitted(way, &admitted(way, &sent, between), asked(second));
        let inner = admitted(way, &outer, asked(first));
        let mut outcome = Outcome::once(inner.clone(), admitted(way, &inner, GradDType::Exactly(DType::F32)));
        outcome.extra.insert("outer_received".to_owned(), vec![Some(outer)]);
        outcome
    };
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    let ours = ours.with("outer_received", &outer_log.firsts());
    let measured = row.measured(&["outer_received"]);
    Step::modelled(ours, measured, Rule::Carried, outcome(Way::Ours)).understood(outcome(Way::PyTorch))
}

/// `1.implicit_scalar_grad`: a scalar needs no seed.
pub fn implicit_seed(row: &Row) -> Step {
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let forward = Probe::new(&log, |ctx, _| {
        ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
        Ok(num::full(DType::F16, Shape::scalar(), 2.0).into())
    });
    let spread = |grad: &DynTensor| num::full(DType::F32, 2, Num::of(grad).values()[0]);
    let y = forward.backward(move |_, grads| Ok(grads[0].as_ref().map(spread).unwrap().into())).on(&x);
    let result = y.and_then(|y| y[0].backward());
    Step::equal(Outcome::of(&log, Some(&x)).failing("backward", result), row.measured(&[]))
}

/// `1.multi_root_same_y`: one tensor as two roots.
pub fn two_roots(row: &Row) -> Step {
    let log = Log::default();
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, DType::F16, Some(GradDType::Exactly(DType::F32))).on(&x).unwrap()[0];
    let seeds = [1.0, 2_f64.powi(-20)].map(|seed| num::tensor(DType::F32, &[seed]));
    let result = backward(&[(y, Some(&seeds[0])), (y, Some(&seeds[1]))], BackwardOptions::new());
    Step::equal(Outcome::of(&log, Some(&x)).failing("backward", result), row.measured(&[]))
}
