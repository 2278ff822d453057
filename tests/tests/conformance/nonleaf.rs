//! Groups 8 and 9: derivatives of derivatives, and derivatives with respect to what is not a leaf.

use gradpact::{BackwardOptions, DType, DynTensor, GradDType, apply, grad};

use crate::built_in;
use crate::num::{self, Num};
use crate::outcome::Outcome;
use crate::probe::{Log, Probe, ones};
use crate::row::{Row, declaration};
use crate::rules::{Rule, Way, admitted, carried, convert};
use crate::step::Step;

const F16: GradDType = GradDType::Exactly(DType::F16);
const F32: GradDType = GradDType::Exactly(DType::F32);

fn one_grad(y: &DynTensor, x: &DynTensor, seed: &DynTensor, options: BackwardOptions) -> DynTensor {
    grad(&[(y, Some(seed))], &[x], options).unwrap().remove(0).unwrap()
}

/// `8.double/DECLARED/x_DTYPE`: first and second derivatives of x² at 3.
pub(crate) fn double(row: &Row) -> Step {
    let [declared, x] = row.parts()[..] else { panic!("{}", row.id) };
    let (declared, x_dtype) = (declaration(declared), num::dtype(x.trim_start_matches("x_")).unwrap());
    let log = Log::default();
    let x = num::tensor(x_dtype, &[3.0]).requiring_grad().unwrap();
    let v = num::tensor(DType::F32, &[0.1]).requiring_grad().unwrap();
    let y = &square(&log, declared, false).on(&x).unwrap()[0];
    let gx = one_grad(y, &x, &v, BackwardOptions::new().create_graph());
    let second = grad(&[(&gx, None)], &[&x, &v], BackwardOptions::new().allow_unused()).unwrap();
    let facts = ["first_order gx", "second_order wrt x", "second_order wrt v"];
    let ours = Outcome::of(&log, None)
        .with(facts[0], &[Some(gx)])
        .with(facts[1], &[second[0].clone()])
        .with(facts[2], &[second[1].clone()]);
    Step::equal(ours, row.measured(&facts))
}

/// x² in f16, perhaps marked as differentiable once.
fn square(log: &Log, declared: Option<GradDType>, once: bool) -> Probe {
    let square = Probe::new(log, move |ctx, inputs| {
        let x = inputs.get(0)?;
        ctx.save_for_backward(x);
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        if once {
            ctx.mark_once_differentiable();
        }
        Ok(built_in::mul(x, x)?.cast(DType::F16)?.into())
    });
    square.backward(|ctx, grads| {
        let g = grads[0].as_ref().unwrap();
        let x = ctx.saved_tensor(0)?.cast(g.dtype())?;
        Ok(built_in::mul(&built_in::add(&x, &x)?, g)?.into())
    })
}

/// `8.once_differentiable/DECLARED`: the first derivative of x² at 3, and an attempt at the second.
pub(crate) fn once(row: &Row) -> Step {
    let log = Log::default();
    let x = num::tensor(DType::F32, &[3.0]).requiring_grad().unwrap();
    let v = num::tensor(DType::F32, &[0.1]).requiring_grad().unwrap();
    let y = &square(&log, declaration(row.rest()), true).on(&x).unwrap()[0];
    let gx = one_grad(y, &x, &v, BackwardOptions::new().create_graph());
    let result = gx.backward();
    let ours = Outcome::of(&log, None).with("gx", &[Some(gx)]).failing("second backward", result);
    Step::equal(ours, row.measured(&["gx"]))
}

/// `8.cast_is_differentiable/DECLARED`: the second derivative goes through the conversions of the first.
pub(crate) fn cast_is_differentiable(row: &Row) -> Step {
    let declared = declaration(row.rest());
    let log = Log::default();
    let x = num::tensor(DType::F32, &[3.0]).requiring_grad().unwrap();
    let v = num::tensor(DType::F32, &[0.1]).requiring_grad().unwrap();
    let y = &Probe::cast(&log, DType::F16, declared).on(&x).unwrap()[0];
    let gx = one_grad(y, &x, &v, BackwardOptions::new().create_graph());
    let seed = num::tensor(DType::F32, &[1e-10]);
    let dv = one_grad(&gx, &v, &seed, BackwardOptions::new());
    let fact = "d(gx*1e-10)/dv";
    let ours = Outcome::of(&log, None).with(fact, &[Some(dv)]);
    let mut by_rule = Outcome {
        received: vec![vec![Some(admitted(
            Way::Ours,
            &Num::exactly(DType::F32, &[0.1]),
            declared.unwrap_or(F16),
        ))]],
        ..Outcome::default()
    };
    // A conversion carries the gradient dtype of its input, f32, also the one that admission made.
    by_rule.extra.insert(fact.to_owned(), vec![Some(Num::exactly(DType::F32, &[1e-10]))]);
    let mut measured = row.measured(&[fact]);
    // That case has no log of its own: what backward received is our addition.
    measured.received.clone_from(&by_rule.received);
    Step::modelled(ours, measured, Rule::Carried, by_rule)
}

/// `9.nonleaf/DECLARED`: gradients with respect to the output y of one Function, through another and through operations.
pub(crate) fn nonleaf(row: &Row) -> Step {
    let declared = declaration(row.rest());
    let (log, z_log) = (Log::default(), Log::default());
    let x = ones(DType::F32, 1);
    let y = &Probe::cast(&log, DType::F16, declared).on(&x).unwrap()[0];
    let z = &apply(Probe::cast(&z_log, DType::F16, Some(F32)), &[y]).unwrap()[0];
    let g = num::tensor(DType::F32, &[0.1]);
    let keep = BackwardOptions::new().retain_graph();
    let twice = |t: &DynTensor| built_in::add(t, t).unwrap();
    let both = grad(&[(z, Some(&g))], &[y, &x], keep).unwrap();
    let unused = grad(&[(&twice(&ones(DType::F32, 1)), Some(&g))], &[y], keep.materialize_grads()).unwrap();
    let facts = [
        "grad(z, y)",
        "grad(y, y)",
        "grad(y*2, y)",
        "grad(y.float()*2, y)",
        "grad(z, (y, x))",
        "unused y, materialize_grads=True",
    ];
    let ours = Outcome::of(&log, None)
        .with(facts[0], &[Some(one_grad(z, y, &g, keep))])
        .with(facts[1], &[Some(one_grad(y, y, &g, keep))])
        .with(facts[2], &[Some(one_grad(&built_in::doubled(y).unwrap(), y, &g, keep))])
        .with(
            facts[3],
            &[Some(one_grad(&built_in::doubled(&y.cast(DType::F32).unwrap()).unwrap(), y, &g, keep))],
        )
        .with(facts[4], &both)
        .with(facts[5], &unused);

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
        for (fact, answer) in facts.iter().zip(answers) {
            outcome.extra.insert((*fact).to_owned(), answer.into_iter().map(Some).collect());
        }
        outcome
    };
    let mut measured = row.measured(&facts);
    // What follows there is `backward(inputs=…)` and gradient edges, which we have not.
    measured.received.truncate(1);
    let rule = if declared.is_none() { Rule::DeclaredZeros } else { Rule::Carried };
    Step::modelled(ours, measured, rule, outcome(Way::Ours)).understood(outcome(Way::PyTorch))
}
