//! Groups 8 and 9: derivatives of derivatives, and derivatives with respect to what is not a leaf.

use gradpact::{DType, GradDType};
use gradpact_tests::conformance::Embedded;
use gradpact_tests::conformance::runs::nonleaf::{
    self as runs, CAST, DOUBLE, IN_BACKWARD, NONLEAF, REQUIRES_GRAD,
};

use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::row::{Row, declaration};
use crate::rules::{Rule, Way, admitted, carried, convert};
use crate::step::Step;

const F16: GradDType = GradDType::Exactly(DType::F16);

/// A measured graph, with our name for a conversion.
fn measured_graph(graph: &str) -> String {
    graph.replace("torch::autograd::", "").replace("ToCopyBackward0", "Cast")
}

/// `8.double/DECLARED/x_DTYPE`: first and second derivatives of x² at 3.
pub(crate) fn double(row: &Row) -> Step {
    let [declared, x] = row.parts()[..] else { panic!("{}", row.id) };
    let (declared, x_dtype) = (declaration(declared), num::dtype(x.trim_start_matches("x_")).unwrap());
    let ours = runs::double::<Embedded>(row);
    let measured = row.measured(&DOUBLE).telling(IN_BACKWARD, in_backward(row));
    Step::modelled(ours, measured, Rule::Carried, doubled(declared, x_dtype))
}

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

/// What a measured case tells of its backward.
fn in_backward(row: &Row) -> String {
    runs::in_backward(row, measured_graph)
}

/// `8.once_differentiable/DECLARED`: the first derivative of x² at 3, and an attempt at the second; or with a gradient that
/// requires none, declared f32.
pub(crate) fn once(row: &Row) -> Step {
    let ours = runs::once::<Embedded>(row);
    if !runs::is_plain(row) {
        return Step::equal(ours, row.measured(&["gx"]).telling(IN_BACKWARD, in_backward(row)));
    }
    let measured = row.measured(&[]).telling(IN_BACKWARD, in_backward(row));
    // It depends on x, so its derivative is not nothing: it is unknown.
    let by_rule = measured.clone().telling(REQUIRES_GRAD, "true");
    let measured = measured.telling(REQUIRES_GRAD, row.told(REQUIRES_GRAD).unwrap());
    Step::modelled(ours, measured, Rule::OnceIsSaid, by_rule)
}

/// `8.cast_is_differentiable/DECLARED`: the second derivative goes through the conversions of the first.
pub(crate) fn cast_is_differentiable(row: &Row) -> Step {
    let declared = declaration(row.rest());
    let ours = runs::cast_is_differentiable::<Embedded>(row);
    let (fact, graphs) = CAST;
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
    let ours = runs::nonleaf::<Embedded>(row);
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
        for (fact, answer) in NONLEAF.iter().zip(answers) {
            outcome.extra.insert((*fact).to_owned(), answer.into_iter().map(Some).collect());
        }
        outcome
    };
    let measured = runs::measured_nonleaf(row);
    let rule = if declared.is_none() { Rule::DeclaredZeros } else { Rule::Carried };
    Step::modelled(ours, measured, rule, outcome(Way::Ours)).understood(outcome(Way::PyTorch))
}
