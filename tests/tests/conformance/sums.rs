//! Groups 3 and 4: several gradients for one output, and none.

use gradpact::{DType, GradDType};
use gradpact_tests::conformance::{Embedded, runs};

use crate::num::Num;
use crate::outcome::Outcome;
use crate::row::Row;
use crate::rules::{Rule, Way, admitted};
use crate::step::Step;
use gradpact_tests::format;

/// The sum of gradients that arrive in this order, by our rules.
pub(crate) fn summed(arriving: &[Num], contract: GradDType) -> Num {
    let admitted: Vec<Num> = arriving.iter().map(|num| admitted(Way::Ours, num, contract)).collect();
    if let [single] = &admitted[..] {
        return single.clone();
    }
    let dtypes = admitted.iter().map(|num| num.dtype);
    let dtype = contract.dtype().or_else(|| dtypes.reduce(format::meeting)).unwrap();
    let wide = format::meeting(dtype, DType::F32);
    let terms: Vec<f64> = admitted.iter().map(|num| num.values()[0]).collect();
    Num::exactly(dtype, &[format::sum_in(wide, &terms)])
}

/// Group 3: consumers of one output, each sending a gradient of its own. The last one created sends first.
pub(crate) fn consumers(row: &Row) -> Step {
    let kept = row.json["inputs"]["kept_alive"].as_bool().unwrap();
    let out = row.out_dtypes().unwrap()[0];
    let declared = row.declared().unwrap().map(|declared| declared[0]);
    let ours = runs::sums::consumers::<Embedded>(row);

    let contract = declared.unwrap_or(GradDType::Exactly(out));
    let arriving: Vec<Num> = runs::sums::sent(row).into_iter().rev().collect();
    let received = summed(&arriving, contract);
    let mut by_rule = Outcome::once(received.clone(), received.rounded(DType::F32));
    if kept {
        // The gradients that somebody still holds are as before.
        by_rule.extra.insert("kept_after".to_owned(), arriving.into_iter().map(Some).collect());
    }
    let measured = row.measured(if kept { &["kept_after"] } else { &[] });
    let rule = if contract == GradDType::Any { Rule::WidestSum } else { Rule::WideSum };
    Step::modelled(ours, measured, rule, by_rule)
}

/// `4.unused`: two outputs, of which the first is used.
pub(crate) fn unused(row: &Row) -> Step {
    let Some(ours) = runs::sums::unused::<Embedded>(row) else { return Step::left("complex dtypes") };
    Step::modelled(ours, row.measured(&[]), Rule::DeclaredZeros, runs::sums::unused_by_rule(row))
}

/// `4.undefined_gradient/DECLARED/materialize=…`: the consumer's backward returns no gradient.
pub(crate) fn undefined(row: &Row) -> Step {
    let ours = runs::sums::undefined::<Embedded>(row);
    Step::modelled(ours, row.measured(&[]), Rule::DeclaredZeros, runs::sums::undefined_by_rule(row))
}
