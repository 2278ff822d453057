//! Group 5: what backward returns, and what a seed may be.

use gradpact::{
    BackwardOptions, Context, DType, DynTensor, GradDType, Gradients, Inputs, Result, Shape, apply, backward,
};

use crate::built_in;
use crate::num::{self, Num};
use crate::outcome::{Failed, Outcome};
use crate::probe::{Giver, Log, Probe, ones};
use crate::row::Row;
use crate::rules::{Rule, Way, admitted};
use crate::step::Step;

const F32: GradDType = GradDType::Exactly(DType::F32);

/// The gradient 0.1 in f32, as often as there are elements.
fn tenth(count: usize) -> Num {
    Num::exactly(DType::F32, &vec![0.1; count])
}

/// A Function stored in f16 with gradients declared f32, applied to ones; backward returns what `returned` makes.
struct Returns {
    x: DynTensor,
    /// Whether an operation lies between the leaf and the Function.
    nonleaf: bool,
    /// The output's shape, if it is not the input's.
    out: Option<Shape>,
}

impl Returns {
    fn run(self, returned: impl Fn(DynTensor) -> Result<Gradients> + Send + Sync + 'static) -> Outcome {
        let log = Log::default();
        let input = if self.nonleaf { built_in::same(&self.x).unwrap() } else { self.x.clone() };
        let out = self.out;
        let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
            ctx.set_output_grad_dtype(&[F32])?;
            match &out {
                Some(shape) => Ok(num::full(DType::F16, shape.clone(), 0.0).into()),
                None => Ok(inputs.get(0)?.cast(DType::F16)?.into()),
            }
        };
        let probe = Probe::new(&log, forward);
        let y = probe.backward(move |_, grads| returned(grads[0].clone().unwrap())).on(&input).unwrap();
        let seed = num::full(DType::F32, y[0].shape().clone(), 0.1);
        let result = y[0].backward_with(&seed, BackwardOptions::new());
        Outcome::of(&log, Some(&self.x)).failing("backward", result)
    }
}

fn failed_after(received: Num) -> Outcome {
    let failed = Some(Failed::measured("backward"));
    Outcome { received: vec![vec![Some(received)]], failed, ..Outcome::default() }
}

/// `5.dtype/RETURNED_to_LEAF_x`, and perhaps `_nonleaf` or `_grad_dtype_DECLARED`.
pub fn dtype(row: &Row) -> Step {
    let (returned, rest) = row.rest().split_once("_to_").unwrap();
    let (leaf, suffix) = rest.split_once("_x").unwrap();
    let (Some(returned), Some(leaf)) = (num::dtype(returned), num::dtype(leaf)) else {
        return Step::left("complex dtypes");
    };
    let x = ones(leaf, 2);
    let mut contract = GradDType::Exactly(leaf);
    if let Some(declared) = suffix.strip_prefix("_grad_dtype_") {
        contract = crate::row::grad_dtype(declared).unwrap();
        x.set_grad_dtype(contract).unwrap();
    }
    let run = Returns { x, nonleaf: suffix == "_nonleaf", out: None };
    let ours = run.run(move |grad| Ok(grad.cast(returned)?.into()));
    if !returned.is_float() {
        return Step::modelled(ours, row.measured(&[]), Rule::IntegerGradient, failed_after(tenth(2)));
    }
    let x_grad = admitted(Way::Ours, &tenth(2).rounded(returned), contract);
    Step::modelled(ours, row.measured(&[]), Rule::RoundedOnce, Outcome::once(tenth(2), x_grad))
}

/// `5.kind/None` and `5.count/…`: how many gradients, and which of them are there.
pub fn count(row: &Row) -> Step {
    let returned: fn(DynTensor) -> Result<Gradients> = match row.id.as_str() {
        "5.kind/None" => |_| Ok(Gradients::from(vec![None])),
        "5.count/empty_tuple" => |_| Ok(Gradients::new()),
        "5.count/extra_None" => |grad| Ok(Gradients::from(vec![Some(grad), None])),
        "5.count/extra_tensor" => |grad| Ok([grad.clone(), grad].into()),
        other => panic!("{other}: no such case"),
    };
    let run = Returns { x: ones(DType::F32, 2), nonleaf: false, out: None };
    Step::equal(run.run(returned), row.measured(&[]))
}

/// `(2,)`, `()` or `(3, 2)` as a shape.
fn shape(text: &str) -> Shape {
    let extents = text.trim_matches(['(', ')']).split(',').filter_map(|extent| extent.trim().parse().ok());
    extents.collect()
}

/// `5.shape/(RETURNED)_for_(INPUT)`, where PyTorch sums some: `_sum_to`.
pub fn returned_shape(row: &Row) -> Step {
    let (returned, rest) = row.rest().split_once("_for_").unwrap();
    let input = shape(rest.trim_end_matches("_sum_to"));
    let returned = shape(returned);
    let scalar_input = input.is_empty();
    let out = scalar_input.then(|| returned.clone());
    let received = tenth(out.as_ref().unwrap_or(&input).element_count());
    let run = Returns { x: ones(DType::F32, input), nonleaf: false, out };
    let ours = run.run(move |_| Ok(num::full(DType::F32, returned.clone(), 1.0).into()));
    Step::modelled(ours, row.measured(&[]), Rule::LargerShape, failed_after(received))
}

/// `5.order/sum_to_runs_in_f16_before_cast_to_f32`.
pub fn order(row: &Row) -> Step {
    let run = Returns { x: ones(DType::F32, 2), nonleaf: false, out: None };
    let returned = || Num::exactly(DType::F16, &[65504.0, 1.0].repeat(3)).tensor([3, 2]);
    let ours = run.run(move |_| Ok(returned().into()));
    Step::modelled(ours, row.measured(&[]), Rule::LargerShape, failed_after(tenth(2)))
}

/// `5.root_gradient/SHAPE`, or `None` for none.
pub fn seed(row: &Row) -> Step {
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let y = &Probe::cast(&log, DType::F16, Some(F32)).on(&x).unwrap()[0];
    let seed = (row.rest() != "None").then(|| num::full(DType::F32, shape(row.rest()), 1.0));
    let result = backward(&[(y, seed.as_ref())], BackwardOptions::new());
    Step::equal(Outcome::of(&log, Some(&x)).failing("backward", result), row.measured(&[]))
}

/// `5.downstream_shape/SHAPE`: a consumer sends a gradient of this shape to an output of two elements.
pub fn sent_shape(row: &Row) -> Step {
    let log = Log::default();
    let x = ones(DType::F32, 2);
    let y = &Probe::cast(&log, DType::F16, Some(F32)).on(&x).unwrap()[0];
    let sent = num::full(DType::F16, shape(row.rest()), 65504.0);
    let result = apply(Giver(Some(sent)), &[y]).and_then(|scalar| scalar[0].backward());
    let ours = Outcome::of(&log, Some(&x)).failing("backward", result);
    let by_rule = Outcome { failed: Some(Failed::measured("backward")), ..Outcome::default() };
    Step::modelled(ours, row.measured(&[]), Rule::LargerShape, by_rule)
}
