//! Groups 3 and 4: several gradients for one output, and none.

use gradpact::function::Graph as _;
use gradpact::{BackwardOptions, DType, GradDType, apply};

use crate::conformance::num::{self, Num};
use crate::conformance::outcome::Outcome;
use crate::conformance::probe::{Giver, Log, Probe};
use crate::conformance::row::Row;
use crate::conformance::rules::{Way, admitted};
use crate::conformance::subject::{Of, Subject};

/// What the consumers of a case of group 3 send, in the order in which they were made.
pub fn sent(row: &Row) -> Vec<Num> {
    let consumers = row.json["inputs"]["consumers_in_forward_order"].as_array().unwrap();
    let sent = consumers.iter().map(|consumer| {
        let dtype = num::dtype(consumer[0].as_str().unwrap()).unwrap();
        Num::exactly(dtype, &[consumer[1].as_f64().unwrap()])
    });
    sent.collect()
}

/// Group 3: consumers of one output, each sending a gradient of its own. The last one created sends first.
pub fn consumers<S: Subject>(row: &Row) -> Outcome {
    let inputs = &row.json["inputs"];
    let kept = inputs["kept_alive"].as_bool().unwrap();
    let out = row.out_dtypes().unwrap()[0];
    let declared = row.declared().unwrap().map(|declared| declared[0]);
    let log = Log::default();
    let x = S::ones(DType::F32, 1);
    let y = &Probe::<S>::cast(&log, out, declared).on(&x).unwrap()[0];
    // An engine may add into a gradient that nobody else holds.
    let sent = sent(row);
    let gradients: Vec<_> = sent.iter().map(S::vector).filter(|_| kept).collect();
    let givers: Vec<Giver<S>> = if kept {
        gradients.iter().cloned().map(Giver::kept).collect()
    } else {
        sent.into_iter().map(Giver::fresh).collect()
    };
    let scalars: Vec<_> = givers.into_iter().map(|giver| apply(giver, &[y]).unwrap()[0].clone()).collect();
    let roots: Vec<_> = scalars.iter().map(|scalar| (scalar, None)).collect();
    let options = BackwardOptions::new();
    let create_graph = inputs["create_graph"].as_bool().unwrap();
    let result = Of::<S>::run_backward(&roots, if create_graph { options.create_graph() } else { options });
    let outcome = Outcome::left::<S>(&log, Some(&x)).failing("backward", result);
    if !kept {
        return outcome;
    }
    // What the gradients are that somebody still holds. The measured list is in the order of arrival.
    outcome.noting("kept_after", gradients.iter().rev().map(|grad| Some(S::read(grad))).collect())
}

/// `4.unused`: two outputs, of which the first is used. `None` if there are dtypes that we do not have.
pub fn unused<S: Subject>(row: &Row) -> Option<Outcome> {
    let inputs = &row.json["inputs"];
    let out = row.out_dtypes()?;
    let materialize = inputs["set_materialize_grads"].as_bool().unwrap();
    let marked = inputs["mark_non_differentiable(out1)"].as_bool().unwrap();
    let declared = row.declared().unwrap();
    let log = Log::default();
    let x = S::ones(DType::F32, 2);
    let probe = Probe::<S>::new(&log, move |ctx, inputs| {
        if marked {
            ctx.mark_non_differentiable(&[1]);
        }
        if let Some(declared) = &declared {
            ctx.set_output_grad_dtype(declared)?;
        }
        ctx.set_materialize_grads(materialize);
        let x = inputs.get(0)?;
        Ok([x.cast(out[0])?, x.cast(out[1])?].into())
    });
    let outputs = probe.on(&x).unwrap();
    let result = outputs[0].backward_with(&S::vector(&one_and_little()), BackwardOptions::new());
    Some(Outcome::left::<S>(&log, Some(&x)).failing("backward", result))
}

/// What is sent to the output that is used.
fn one_and_little() -> Num {
    Num::exactly(DType::F32, &[1.0, 1e-10])
}

/// What must come of [`unused`]: zeros in the declared dtype.
pub fn unused_by_rule(row: &Row) -> Outcome {
    let inputs = &row.json["inputs"];
    let out = row.out_dtypes().unwrap();
    let materialize = inputs["set_materialize_grads"].as_bool().unwrap();
    let marked = inputs["mark_non_differentiable(out1)"].as_bool().unwrap();
    let declared = row.declared().unwrap();
    let contract = |slot: usize| declared.as_ref().map_or(GradDType::Exactly(out[slot]), |d| d[slot]);
    let received = admitted(Way::Ours, &one_and_little(), contract(0));
    let differentiable = !marked && out[1].is_float();
    let zeros_in = contract(1).dtype().filter(|_| differentiable).unwrap_or(out[1]);
    let zeros = materialize.then(|| Num::exactly(zeros_in, &[0.0, 0.0]));
    let x_grad = Some(received.rounded(DType::F32));
    Outcome { received: vec![vec![Some(received), zeros]], x_grad, ..Outcome::default() }
}

/// `4.undefined_gradient/DECLARED/materialize=…`: the consumer's backward returns no gradient.
pub fn undefined<S: Subject>(row: &Row) -> Outcome {
    let declared = row.declared().unwrap().map(|declared| declared[0]);
    let materialize = row.json["inputs"]["set_materialize_grads"].as_bool().unwrap();
    let log = Log::default();
    let x = S::ones(DType::F32, 2);
    let probe = Probe::<S>::new(&log, move |ctx, inputs| {
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        ctx.set_materialize_grads(materialize);
        Ok(inputs.get(0)?.cast(DType::F16)?.into())
    });
    let y = &probe.on(&x).unwrap()[0];
    let result = apply(Giver::<S>::nothing(), &[y]).and_then(|scalar| scalar[0].backward());
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// What must come of [`undefined`]: zeros in the declared dtype.
pub fn undefined_by_rule(row: &Row) -> Outcome {
    let declared = row.declared().unwrap().map(|declared| declared[0]);
    let materialize = row.json["inputs"]["set_materialize_grads"].as_bool().unwrap();
    let dtype = declared.and_then(GradDType::dtype).unwrap_or(DType::F16);
    let zeros = materialize.then(|| Num::exactly(dtype, &[0.0, 0.0]));
    let x_grad = zeros.as_ref().map(|zeros| zeros.rounded(DType::F32));
    Outcome { received: vec![vec![zeros]], x_grad, ..Outcome::default() }
}
