//! Group 1: every output dtype, declaration and incoming dtype, through every way into a Function.

use gradpact::{DType, GradDType};
use gradpact_tests::conformance::{Embedded, runs};

use crate::built_in;
use crate::num::{self, Num};
use crate::outcome::Outcome;
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
pub(crate) fn entry(row: &Row) -> Step {
    let [out, declared, _] = row.parts()[..] else { panic!("{}", row.id) };
    let (out, declared) = (num::dtype(out).unwrap(), declaration(declared));
    let sent = row.incoming();
    let asked = declared.unwrap_or(GradDType::Exactly(out));
    let cloned = row.id.starts_with("1.clone/");
    let between = cloned.then(|| (GradDType::Exactly(out), carried(out, asked)));
    let ours = runs::matrix::entry::<Embedded>(row);
    Route { sent, carried: None, between, asked, leaf: DType::F32 }.step(row, ours)
}

/// `1.float_sum/OUT/DECLARED`: a conversion before the Function sees the gradient.
pub(crate) fn float_sum(row: &Row) -> Step {
    let [out, declared] = row.parts()[..] else { panic!("{}", row.id) };
    let (out, declared) = (num::dtype(out).unwrap(), declaration(declared));
    let asked = declared.unwrap_or(GradDType::Exactly(out));
    let sent = |dtype| Num::exactly(dtype, &[1e-10]);
    let loss = carried(DType::F32, asked);
    let between = Some((GradDType::Exactly(out), loss));
    let ours = runs::matrix::float_sum::<Embedded>(row);
    // The seed has the dtype that the loss asks for; where that is any, the loss's own.
    let carried = Some(sent(loss.dtype().unwrap_or(DType::F32)));
    Route { sent: sent(DType::F32), carried, between, asked, leaf: DType::F32 }.step(row, ours)
}

/// `1.down/OPERATION/DECLARED`: `OPERATION(y) * 1e-10` for an f16 y of [1, 2].
pub(crate) fn down(row: &Row) -> Step {
    let (operation, declared) = row.rest().rsplit_once('/').unwrap();
    let Some(down) = built_in::down(operation) else {
        return Step::left("an operation that we have no twin of");
    };
    let declared = declaration(declared);
    let asked = declared.unwrap_or(GradDType::Exactly(DType::F16));
    // The factor is rounded to the dtype of the gradient of the loss; the rest is exact, or nearly.
    let sent = |dtype| {
        let factor = Num::exactly(dtype, &[1e-10]).values()[0];
        Num::exactly(dtype, &down.gradient.map(|value| value * factor))
    };
    let loss = carried(down.loss, asked).dtype().unwrap_or(down.loss);
    let between = down.rounds.then_some((GradDType::Exactly(DType::F16), GradDType::Any));
    let ours = runs::matrix::down::<Embedded>(row, down.apply);
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
pub(crate) fn chain(row: &Row) -> Step {
    let (first, rest) = row.rest().split_once('/').unwrap();
    let (second, mode) = rest.split_once('/').unwrap();
    let (first, second) = (declaration(first), declaration(second));
    let sent = Num::exactly(DType::F32, &[1e-10]);
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
    let ours = runs::matrix::chain::<Embedded>(row);
    let measured = row.measured(&["outer_received"]);
    Step::modelled(ours, measured, Rule::Carried, outcome(Way::Ours)).understood(outcome(Way::PyTorch))
}

/// `1.implicit_scalar_grad`: a scalar needs no seed.
pub(crate) fn implicit_seed(row: &Row) -> Step {
    Step::equal(runs::matrix::implicit_seed::<Embedded>(), row.measured(&[]))
}

/// `1.multi_root_same_y`: one tensor as two roots.
pub(crate) fn two_roots(row: &Row) -> Step {
    Step::equal(runs::matrix::two_roots::<Embedded>(), row.measured(&[]))
}
