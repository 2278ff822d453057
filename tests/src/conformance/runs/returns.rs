//! Group 5: what backward returns, and what a seed may be.

use gradpact::function::Graph as _;
use gradpact::{BackwardOptions, DType, GradDType, Gradients, Result, Shape, apply};

use super::F32;
use crate::conformance::num::{self, Num};
use crate::conformance::outcome::Outcome;
use crate::conformance::probe::{Giver, Log, Probe};
use crate::conformance::row::{Row, grad_dtype};
use crate::conformance::subject::{Dyn, Of, Subject};

/// The gradient 0.1 in f32, as often as there are elements.
pub fn tenth(count: usize) -> Num {
    Num::exactly(DType::F32, &vec![0.1; count])
}

/// What a hook on an input that is no leaf saw, among the facts of a case.
pub const HOOK: &str = "tensor_hook_of_nonleaf_input_saw";

/// A Function stored in f16 with gradients declared f32, applied to ones; backward returns what `returned` makes.
struct Returns<S: Subject> {
    x: Dyn<S>,
    /// Whether an operation lies between the leaf and the Function.
    nonleaf: bool,
    /// The output's shape, if it is not the input's.
    out: Option<Shape>,
}

impl<S: Subject> Returns<S> {
    /// Of two ones.
    fn two() -> Self {
        Self { x: S::ones(DType::F32, 2), nonleaf: false, out: None }
    }

    fn run(self, returned: impl Fn(Dyn<S>) -> Result<Gradients<Of<S>>> + Send + Sync + 'static) -> Outcome {
        let log = Log::default();
        let watched = self.nonleaf.then(|| S::watched(&S::same(&self.x).unwrap()));
        let input = watched.as_ref().map_or(&self.x, |(input, _)| input);
        let out = self.out;
        let probe = Probe::<S>::new(&log, move |ctx, inputs| {
            ctx.set_output_grad_dtype(&[F32])?;
            match &out {
                Some(shape) => Ok(S::full(DType::F16, shape.clone(), 0.0).into()),
                None => Ok(inputs.get(0)?.cast(DType::F16)?.into()),
            }
        });
        let y = probe.backward(move |_, grads| returned(grads[0].clone().unwrap())).on(input).unwrap();
        let seed = S::full(DType::F32, y[0].shape().clone(), 0.1);
        let result = y[0].backward_with(&seed, BackwardOptions::new());
        let outcome = Outcome::left::<S>(&log, Some(&self.x)).failing("backward", result);
        match watched {
            Some((_, saw)) => outcome.noting(HOOK, saw.firsts()),
            None => outcome,
        }
    }
}

/// A case of `5.dtype`.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// In which dtype backward returns its gradient.
    pub dtype: DType,
    /// The dtype of the leaf.
    pub leaf: DType,
    /// The dtype of the leaf's gradient.
    pub contract: GradDType,
    /// Whether an operation lies between the leaf and the Function.
    pub nonleaf: bool,
}

impl Returned {
    /// `5.dtype/RETURNED_to_LEAF_x`, and perhaps `_nonleaf` or `_grad_dtype_DECLARED`; `None` if there are dtypes that we do not have.
    pub fn read(row: &Row) -> Option<Self> {
        let (returned, rest) = row.rest().split_once("_to_").unwrap();
        let (leaf, suffix) = rest.split_once("_x").unwrap();
        let (dtype, leaf) = (num::dtype(returned)?, num::dtype(leaf)?);
        let contract = suffix.strip_prefix("_grad_dtype_").map(|declared| grad_dtype(declared).unwrap());
        let contract = contract.unwrap_or(GradDType::Exactly(leaf));
        Some(Self { dtype, leaf, contract, nonleaf: suffix == "_nonleaf" })
    }

    /// What comes of it.
    pub fn run<S: Subject>(self) -> Outcome {
        let ones = S::full(self.leaf, 2, 1.0);
        let x = Of::<S>::leaf(&ones, Some(self.contract)).unwrap();
        let returned = self.dtype;
        Returns::<S> { x, nonleaf: self.nonleaf, out: None }.run(move |grad| Ok(grad.cast(returned)?.into()))
    }
}

/// `5.kind/None` and `5.count/…`: how many gradients, and which of them are there.
pub fn count<S: Subject>(row: &Row) -> Outcome {
    let returned: fn(Dyn<S>) -> Result<Gradients<Of<S>>> = match row.id.as_str() {
        "5.kind/None" => |_| Ok(Gradients::from(vec![None])),
        "5.count/empty_tuple" => |_| Ok(Gradients::new()),
        "5.count/extra_None" => |grad| Ok(Gradients::from(vec![Some(grad), None])),
        "5.count/extra_tensor" => |grad| Ok([grad.clone(), grad].into()),
        other => panic!("{other}: no such case"),
    };
    Returns::<S>::two().run(returned)
}

/// `(2,)`, `()` or `(3, 2)` as a shape.
fn shape(text: &str) -> Shape {
    let extents = text.trim_matches(['(', ')']).split(',').filter_map(|extent| extent.trim().parse().ok());
    extents.collect()
}

/// The shapes of `5.shape/(RETURNED)_for_(INPUT)`, where PyTorch sums some: `_sum_to`.
fn shapes(row: &Row) -> (Shape, Shape) {
    let (returned, input) = row.rest().split_once("_for_").unwrap();
    (shape(returned), shape(input.trim_end_matches("_sum_to")))
}

/// How many elements the output of a case of `5.shape` has.
pub fn returned_count(row: &Row) -> usize {
    let (returned, input) = shapes(row);
    if input.is_empty() { returned } else { input }.element_count()
}

/// `5.shape/(RETURNED)_for_(INPUT)`.
pub fn returned_shape<S: Subject>(row: &Row) -> Outcome {
    let (returned, input) = shapes(row);
    let out = input.is_empty().then(|| returned.clone());
    let run = Returns::<S> { x: S::ones(DType::F32, input), nonleaf: false, out };
    run.run(move |_| Ok(S::full(DType::F32, returned.clone(), 1.0).into()))
}

/// `5.order/sum_to_runs_in_f16_before_cast_to_f32`.
pub fn order<S: Subject>() -> Outcome {
    let returned = || S::write(&Num::exactly(DType::F16, &[65504.0, 1.0].repeat(3)), [3, 2]);
    Returns::<S>::two().run(move |_| Ok(returned().into()))
}

/// `5.root_gradient/SHAPE`, or `None` for none.
pub fn seed<S: Subject>(row: &Row) -> Outcome {
    let log = Log::default();
    let x = S::ones(DType::F32, 2);
    let y = &Probe::<S>::cast(&log, DType::F16, Some(F32)).on(&x).unwrap()[0];
    let seed = (row.rest() != "None").then(|| S::full(DType::F32, shape(row.rest()), 1.0));
    let result = Of::<S>::run_backward(&[(y, seed.as_ref())], BackwardOptions::new());
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// `5.downstream_shape/SHAPE`: a consumer sends a gradient of this shape to an output of two elements.
pub fn sent_shape<S: Subject>(row: &Row) -> Outcome {
    let log = Log::default();
    let x = S::ones(DType::F32, 2);
    let y = &Probe::<S>::cast(&log, DType::F16, Some(F32)).on(&x).unwrap()[0];
    let sent = S::full(DType::F16, shape(row.rest()), 65504.0);
    let result = apply(Giver::<S>::kept(sent), &[y]).and_then(|scalar| scalar[0].backward());
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}
