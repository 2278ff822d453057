//! Group 13: Functions applied in an autocast region. It chooses what matrix products are formed in; in which dtype backward
//! receives its gradient is declared all the same.

use std::sync::{Arc, Mutex};

use gradpact::{
    BackwardOptions, Context, DType, DynTensor, Gradients, Inputs, Outputs, Result, apply, autocast_dtype,
};
use gradpact_tests::format;

use crate::num::{self, Num};
use crate::outcome::{Failed, Outcome};
use crate::probe::{Log, Probe, ones};
use crate::row::{Row, declaration};
use crate::rules::{Rule, Way, admitted};
use crate::step::Step;

/// How the Function of a case behaves in a region.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// No decorators: PyTorch runs its backward outside the region.
    Plain,
    /// `custom_fwd` and `custom_bwd`: backward in the region of the forward, as every backward of ours.
    Decorated,
    /// With `cast_inputs`: inputs in this dtype, the region switched off in both halves.
    CastInputs(DType),
}

impl Style {
    /// Runs `body` in the region, or outside where it is switched off.
    fn run<R>(self, body: impl FnOnce() -> Result<R>) -> Result<R> {
        if let Self::CastInputs(_) = self { gradpact::autocast(None, body)? } else { body() }
    }

    /// An input, in the dtype that forward sees it in.
    fn input(self, x: &DynTensor) -> Result<DynTensor> {
        if let Self::CastInputs(dtype) = self { x.cast(dtype) } else { Ok(x.clone()) }
    }
}

/// Facts in words that the two halves note.
type Notes = Arc<Mutex<Vec<(&'static str, String)>>>;

/// The facts of `extra`, as `HALF.FACT`.
const FACTS: [&str; 5] =
    ["forward.x", "forward.autocast", "backward.saved", "backward.autocast", "backward.returned"];

/// The product of two matrices, with the formulas that the cases write by hand.
fn product(style: Style, notes: &Notes, log: &Log, row: &Row) -> Probe {
    let declared = declaration(row.parts()[1]);
    let (in_forward, in_backward) = (Arc::clone(notes), Arc::clone(notes));
    let note = |notes: &Notes, half: [&'static str; 2], dtype: DType| {
        let words = [num::name(dtype).to_owned(), autocast_dtype().is_some().to_string()];
        notes.lock().unwrap().extend(half.into_iter().zip(words));
    };
    let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| -> Result<Outputs> {
        let (x, w) = (style.input(inputs.get(0)?)?, style.input(inputs.get(1)?)?);
        ctx.save_for_backward(&[x.clone(), w.clone()][..]);
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        style.run(|| {
            note(&in_forward, ["forward.x", "forward.autocast"], x.dtype());
            Ok(x.matmul(&w)?.into())
        })
    };
    Probe::new(log, forward).backward(move |ctx, grads: Gradients| {
        let (x, w) = (ctx.saved_tensor(0)?, ctx.saved_tensor(1)?);
        let g = grads[0].as_ref().unwrap();
        style.run(|| {
            note(&in_backward, ["backward.saved", "backward.autocast"], x.dtype());
            let (gx, gw) = (g.matmul(&w.transpose(0, 1)?)?, x.transpose(0, 1)?.matmul(g)?);
            in_backward.lock().unwrap().push(("backward.returned", num::name(gx.dtype()).to_owned()));
            Ok([gx, gw].into())
        })
    })
}

/// `13.autocast/STYLE/DECLARED`: a product of f32 ones, backward outside the region with an f32 gradient of 0.1.
pub(crate) fn autocast(row: &Row) -> Step {
    let style = match row.parts()[0] {
        "plain" => Style::Plain,
        "custom_fwd_bwd" => Style::Decorated,
        other => {
            let dtype = other.strip_prefix("custom_fwd_bwd_cast_").and_then(num::dtype);
            Style::CastInputs(dtype.unwrap_or_else(|| panic!("{}: no such case", row.id)))
        }
    };
    // "cpu bfloat16, forward only"
    let region = row.json["inputs"]["autocast"].as_str().unwrap().split([' ', ',']).nth(1).unwrap();
    let region = num::dtype(region).unwrap();
    let (log, notes) = (Log::default(), Notes::default());
    let (x, w) = (ones(DType::F32, [1, 1]), ones(DType::F32, [1, 1]));
    let y = gradpact::autocast(region, || apply(product(style, &notes, &log, row), &[&x, &w]));
    let y = y.unwrap().unwrap()[0].clone();
    assert_eq!(autocast_dtype(), None, "backward is called outside");
    let result = y.backward_with(&num::full(DType::F32, [1, 1], 0.1), BackwardOptions::new());
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    let ours = ours.telling("out", num::name(y.dtype()));
    let ours = notes.lock().unwrap().drain(..).fold(ours, |ours, (fact, words)| ours.telling(fact, words));

    let mut measured = row.measured(&[]);
    if let Some(out) = row.json["out_dtype"].as_str() {
        measured = measured.telling("out", out);
    }
    for fact in FACTS {
        let (half, name) = fact.split_once('.').unwrap();
        if let Some(value) = row.json["extra"][half].get(name) {
            measured =
                measured.telling(fact, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    let rule = if style == Style::Plain { Rule::BackwardInRegion } else { Rule::MixedProducts };
    let (by_rule, model) =
        (outcome(Way::Ours, style, region, row), outcome(Way::PyTorch, style, region, row));
    Step::modelled(ours, measured, rule, by_rule).understood(model)
}

/// What must come of it. Everything is a single product with one, so each step rounds once and does nothing else.
fn outcome(way: Way, style: Style, region: DType, row: &Row) -> Outcome {
    let (cast, in_backward) = match style {
        Style::CastInputs(dtype) => (Some(dtype), false),
        Style::Decorated => (None, true),
        Style::Plain => (None, way == Way::Ours),
    };
    let (out, saved) = (cast.unwrap_or(region), cast.unwrap_or(DType::F32));
    let contract = declaration(row.parts()[1]).unwrap_or(gradpact::GradDType::Exactly(out));
    let received = admitted(way, &Num::exactly(DType::F32, &[0.1]), contract);
    let outcome = Outcome { received: vec![vec![Some(received.clone())]], ..Outcome::default() };
    let outcome = outcome
        .telling("out", num::name(out))
        .telling("forward.x", num::name(saved))
        .telling("forward.autocast", cast.is_none().to_string())
        .telling("backward.saved", num::name(saved))
        .telling("backward.autocast", in_backward.to_string());
    if way == Way::PyTorch && !in_backward && received.dtype != saved {
        return Outcome { failed: Some(Failed::measured("backward")), ..outcome };
    }
    // A region leaves f64 alone, and converts the other operand all the same.
    let returned = match in_backward {
        true if received.dtype == DType::F64 => format::meeting(DType::F64, region),
        true => region,
        false => format::meeting(received.dtype, saved),
    };
    let x_grad = Some(received.rounded(returned).rounded(DType::F32));
    Outcome { x_grad, ..outcome }.telling("backward.returned", num::name(returned))
}
