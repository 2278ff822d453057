//! Group 12: gradcheck, which in PyTorch passes whatever dtype is declared or returned.

use gradpact::testing::{Gradcheck, GradcheckReport};
use gradpact::{Context, DType, GradDType, Inputs, Outputs, Result};

use crate::built_in;
use crate::num;
use crate::outcome::{Failed, Outcome};
use crate::probe::{Log, Probe};
use crate::row::{Row, declaration};
use crate::rules::Rule;
use crate::step::Step;

/// `x²` in f64; its backward is `2·x·g`, in the promoted dtype unless `returned` says otherwise.
fn square(log: &Log, declared: Option<GradDType>, returned: Option<DType>) -> Probe {
    let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| -> Result<Outputs> {
        let x = inputs.get(0)?;
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        ctx.save_for_backward(x);
        Ok(built_in::mul(x, x)?.into())
    };
    Probe::new(log, forward).backward(move |ctx, grads| {
        let twice = built_in::doubled(grads[0].as_ref().unwrap())?;
        let product = built_in::mul(&twice, ctx.saved_tensor(0)?)?;
        Ok(product.cast(returned.unwrap_or(product.dtype()))?.into())
    })
}

/// Fails with what a check found.
fn outcome(result: Result<GradcheckReport>) -> Outcome {
    let found = result.map(drop);
    Outcome::default().failing("check", found)
}

/// `12.gradcheck/…`.
pub(crate) fn gradcheck(row: &Row) -> Step {
    let x = num::tensor(DType::F64, &[0.7, -1.3]).requiring_grad().unwrap();
    let log = Log::default();
    let measured = row.json["ok"] == true;
    let measured = Outcome { failed: (!measured).then(|| Failed::measured("check")), ..Outcome::default() };
    let fails = Outcome { failed: Some(Failed::measured("check")), ..Outcome::default() };
    let part = row.parts()[0];
    match part {
        "backward_returns_f32_for_f64_input" => {
            let check = Gradcheck::new().check(square(&log, None, Some(DType::F32)), &x);
            Step::modelled(outcome(check), measured, Rule::ContractChecked, fails)
        }
        "leaf_grad_dtype_f32_on_f64_leaf" => {
            x.set_grad_dtype(GradDType::Exactly(DType::F32)).unwrap();
            Step::equal(outcome(Gradcheck::new().check(square(&log, None, None), &x)), measured)
        }
        _ => {
            let declared = declaration(part);
            let fast = row.id.contains("fast=True");
            let check = if fast { Gradcheck::new().fast() } else { Gradcheck::new() };
            let ours = outcome(check.check(square(&log, declared, None), &x));
            // Also where the check fails: what backward was given is what was declared, zeros included.
            let expected = declared.map_or(Some(DType::F64), GradDType::dtype);
            for received in log.calls().into_iter().flatten().flatten() {
                assert!(expected.is_none_or(|expected| received.dtype == expected), "{}", row.id);
            }
            let narrow = expected.is_some_and(|dtype| dtype != DType::F64);
            let by_rule = if narrow { fails } else { Outcome::default() };
            Step::modelled(ours, measured, Rule::ContractChecked, by_rule)
        }
    }
}
