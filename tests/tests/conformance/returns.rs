//! Group 5: what backward returns, and what a seed may be.

use gradpact_tests::conformance::Embedded;
use gradpact_tests::conformance::runs::returns::{self, HOOK, Returned, tenth};

use crate::outcome::{Failed, Outcome};
use crate::row::Row;
use crate::rules::{Rule, Way, admitted};
use crate::step::Step;

/// `5.dtype/…`: a gradient of some dtype for a leaf of some dtype.
pub(crate) fn dtype(row: &Row) -> Step {
    let Some(case) = Returned::read(row) else { return Step::left("complex dtypes") };
    let ours = case.run::<Embedded>();
    if !case.dtype.is_float() {
        return Step::modelled(
            ours,
            row.measured(&[]),
            Rule::IntegerGradient,
            Outcome::failed_after(tenth(2)),
        );
    }
    let x_grad = admitted(Way::Ours, &tenth(2).rounded(case.dtype), case.contract);
    let by_rule = Outcome::once(tenth(2), x_grad.clone());
    if case.nonleaf {
        let by_rule = by_rule.noting(HOOK, vec![Some(x_grad)]);
        return Step::modelled(ours, row.measured(&[HOOK]), Rule::RoundedOnce, by_rule);
    }
    Step::modelled(ours, row.measured(&[]), Rule::RoundedOnce, by_rule)
}

/// `5.kind/None` and `5.count/…`: how many gradients, and which of them are there.
pub(crate) fn count(row: &Row) -> Step {
    Step::equal(returns::count::<Embedded>(row), row.measured(&[]))
}

/// `5.shape/(RETURNED)_for_(INPUT)`, where PyTorch sums some: `_sum_to`.
pub(crate) fn returned_shape(row: &Row) -> Step {
    let ours = returns::returned_shape::<Embedded>(row);
    let by_rule = Outcome::failed_after(tenth(returns::returned_count(row)));
    Step::modelled(ours, row.measured(&[]), Rule::LargerShape, by_rule)
}

/// `5.order/sum_to_runs_in_f16_before_cast_to_f32`.
pub(crate) fn order(row: &Row) -> Step {
    let ours = returns::order::<Embedded>();
    Step::modelled(ours, row.measured(&[]), Rule::LargerShape, Outcome::failed_after(tenth(2)))
}

/// `5.root_gradient/SHAPE`, or `None` for none.
pub(crate) fn seed(row: &Row) -> Step {
    Step::equal(returns::seed::<Embedded>(row), row.measured(&[]))
}

/// `5.downstream_shape/SHAPE`: a consumer sends a gradient of this shape to an output of two elements.
pub(crate) fn sent_shape(row: &Row) -> Step {
    let by_rule = Outcome { failed: Some(Failed::measured("backward")), ..Outcome::default() };
    Step::modelled(returns::sent_shape::<Embedded>(row), row.measured(&[]), Rule::LargerShape, by_rule)
}
