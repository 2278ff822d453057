//! Groups 3 and 4: several gradients for one output, and none.

use gradpact::{BackwardOptions, DType, GradDType, apply, backward};

use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::probe::{Giver, Log, Probe, ones};
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
    let inputs = &row.json["inputs"];
    let consumers: Vec<Num> = inputs["consumers_in_forward_order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|consumer| {
            let dtype = num::dtype(consumer[0].as_str().unwrap()).unwrap();
            Num::exactly(dtype, &[consumer[1].as_f64().unwrap()])
        })
        .collect();
    let kept = inputs["kept_alive"].as_bool().unwrap();
    let out = row.out_dtypes().unwrap()[0];
    let declared = row.declared().unwrap().map(|declared| declared[0]);
    let log = Log::default();
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, out, declared).on(&x).unwrap()[0];
    let gradients: Vec<_> = consumers.iter().map(Num::vector).collect();
    let scalars: Vec<_> =
        gradients.iter().map(|grad| apply(Giver(Some(grad.clone())), &[y]).unwrap()[0].clone()).collect();
    let roots: Vec<_> = scalars.iter().map(|scalar| (scalar, None)).collect();
    let options = BackwardOptions::new();
    let create_graph = inputs["create_graph"].as_bool().unwrap();
    let result = backward(&roots, if create_graph { options.create_graph() } else { options });
    let mut ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    let mut measured = row.measured(if kept { &["kept_after"] } else { &[] });

    let contract = declared.unwrap_or(GradDType::Exactly(out));
    let arriving: Vec<Num> = consumers.iter().rev().cloned().collect();
    let received = summed(&arriving, contract);
    let mut by_rule = Outcome::once(received.clone(), received.rounded(DType::F32));
    if kept {
        // The gradients that somebody still holds are as before. The measured list is in the order of arrival.
        let after = gradients.iter().rev().map(|grad| Some(Num::of(grad))).collect();
        ours.extra.insert("kept_after".to_owned(), after);
        by_rule.extra.insert("kept_after".to_owned(), arriving.into_iter().map(Some).collect());
    } else {
        measured.extra.clear();
    }
    let rule = if contract == GradDType::Any { Rule::WidestSum } else { Rule::WideSum };
    Step::modelled(ours, measured, rule, by_rule)
}

/// `4.unused`: two outputs, of which the first is used.
pub(crate) fn unused(row: &Row) -> Step {
    let inputs = &row.json["inputs"];
    let Some(out) = row.out_dtypes() else { return Step::left("complex dtypes") };
    let materialize = inputs["set_materialize_grads"].as_bool().unwrap();
    let marked = inputs["mark_non_differentiable(out1)"].as_bool().unwrap();
    let declared = row.declared().unwrap();
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let outputs = {
        let (out, declared) = (out.clone(), declared.clone());
        let forward = move |ctx: &mut gradpact::Context, inputs: &gradpact::Inputs<'_>| {
            if marked {
                ctx.mark_non_differentiable(&[1]);
            }
            if let Some(declared) = &declared {
                ctx.set_output_grad_dtype(declared)?;
            }
            ctx.set_materialize_grads(materialize);
            let x = inputs.get(0)?;
            Ok([x.cast(out[0])?, x.cast(out[1])?].into())
        };
        Probe::new(&log, forward).on(&x).unwrap()
    };
    let sent = Num::exactly(DType::F32, &[1.0, 1e-10]);
    let result = outputs[0].backward_with(&sent.vector(), BackwardOptions::new());
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);

    let contract = |slot: usize| declared.as_ref().map_or(GradDType::Exactly(out[slot]), |d| d[slot]);
    let received = admitted(Way::Ours, &sent, contract(0));
    let differentiable = !marked && out[1].is_float();
    let zeros_in = contract(1).dtype().filter(|_| differentiable).unwrap_or(out[1]);
    let zeros = materialize.then(|| Num::exactly(zeros_in, &[0.0, 0.0]));
    let x_grad = Some(received.rounded(DType::F32));
    let by_rule = Outcome { received: vec![vec![Some(received), zeros]], x_grad, ..Outcome::default() };
    Step::modelled(ours, row.measured(&[]), Rule::DeclaredZeros, by_rule)
}

/// `4.undefined_gradient/DECLARED/materialize=…`: the consumer's backward returns no gradient.
pub(crate) fn undefined(row: &Row) -> Step {
    let declared = row.declared().unwrap().map(|declared| declared[0]);
    let materialize = row.json["inputs"]["set_materialize_grads"].as_bool().unwrap();
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let forward = move |ctx: &mut gradpact::Context, inputs: &gradpact::Inputs<'_>| {
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        ctx.set_materialize_grads(materialize);
        Ok(inputs.get(0)?.cast(DType::F16)?.into())
    };
    let y = &Probe::new(&log, forward).on(&x).unwrap()[0];
    let result = apply(Giver(None), &[y]).and_then(|scalar| scalar[0].backward());
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);

    let dtype = declared.and_then(GradDType::dtype).unwrap_or(DType::F16);
    let zeros = materialize.then(|| Num::exactly(dtype, &[0.0, 0.0]));
    let x_grad = zeros.as_ref().map(|zeros| zeros.rounded(DType::F32));
    let by_rule = Outcome { received: vec![vec![zeros]], x_grad, ..Outcome::default() };
    Step::modelled(ours, row.measured(&[]), Rule::DeclaredZeros, by_rule)
}
