//! Group 10, as far as tensors that do not change can express it: views, saved tensors, several backwards.

use gradpact::function::Graph as _;
use gradpact::ops::DynTensorOps as _;
use gradpact::{BackwardOptions, DType, GradDType, Gradients, Result};

use super::F32;
use crate::conformance::num::Num;
use crate::conformance::outcome::Outcome;
use crate::conformance::probe::{Log, Probe};
use crate::conformance::row::{Row, grad_dtype};
use crate::conformance::subject::{Dyn, Of, Subject};

/// The seed of these cases.
pub fn seed() -> Num {
    Num::exactly(DType::F32, &[0.1, 0.2])
}

/// What made the output of a [`View`], among its facts.
pub const GRAPH: &str = "graph";

/// A case of `10.input_as_is/…`, `10.returns_…` and `10.then_view/…`: an output that shares its values with the input.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    name: &'a str,
    /// What the output declares.
    pub declared: GradDType,
}

impl<'a> View<'a> {
    /// What a case does.
    pub fn read(row: &'a Row) -> Self {
        let (name, declared) = row.id["10.".len()..].rsplit_once('/').unwrap();
        Self { name, declared: grad_dtype(declared).unwrap() }
    }

    /// Whether the input is a leaf.
    pub fn of_leaf(&self) -> bool {
        matches!(self.name, "input_as_is/leaf" | "returns_view_of_input" | "returns_detach")
    }

    /// Whether a view is made of the output afterwards.
    pub fn viewed(&self) -> bool {
        self.name == "then_view/y.view(2)"
    }

    /// What comes of it.
    pub fn run<S: Subject>(self) -> Outcome {
        let log = Log::default();
        let x = S::leaf(DType::F16, &[1.0, 2.0]);
        let input = if self.of_leaf() { x.clone() } else { S::same(&x).unwrap() };
        let forward: fn(&Dyn<S>) -> Result<Dyn<S>> = match self.name {
            "input_as_is/leaf" | "input_as_is/nonleaf" => |x| Ok(x.clone()),
            "returns_view_of_input" => S::view,
            "returns_detach" => |x| Ok(Of::<S>::constant(x)),
            "then_view/y.view(2)" => S::same,
            other => panic!("{other}: no such case"),
        };
        let declared = self.declared;
        let probe = Probe::<S>::new(&log, move |ctx, inputs| {
            let y = forward(inputs.get(0)?)?;
            ctx.set_output_grad_dtype(&[declared])?;
            Ok(y.into())
        });
        let y = probe.on(&input).unwrap()[0].clone();
        let graph = S::graph(&y);
        let y = if self.viewed() { S::view(&y).unwrap() } else { y };
        let result = y.backward_with(&S::vector(&seed()), BackwardOptions::new());
        Outcome::left::<S>(&log, Some(&x)).failing("backward", result).telling(GRAPH, graph)
    }
}

/// What is sent to the two outputs of [`returned_twice`].
fn two_seeds() -> [Num; 2] {
    [0.1, 0.3].map(|value| Num::exactly(DType::F32, &[value, value]))
}

/// What must come of [`returned_twice`]: to each output its own, and the second goes on.
pub fn returned_twice_by_rule() -> Outcome {
    let [first, second] = two_seeds();
    let second = second.rounded(DType::F64);
    let x_grad = Some(second.rounded(DType::F16));
    Outcome { received: vec![vec![Some(first), Some(second)]], x_grad, ..Outcome::default() }
}

/// `10.same_tensor_returned_twice` and `10.input_returned_twice`.
pub fn returned_twice<S: Subject>(row: &Row) -> Outcome {
    let log = Log::default();
    let x = S::ones(DType::F16, 2);
    let input = row.id == "10.input_returned_twice";
    let probe = Probe::<S>::new(&log, move |ctx, inputs| {
        ctx.set_output_grad_dtype(&[F32, GradDType::Exactly(DType::F64)])?;
        let t = inputs.get(0)?;
        let t = if input { t.clone() } else { S::same(t)? };
        Ok([t.clone(), t].into())
    });
    // The gradient of the second of two outputs.
    let last = |grads: Gradients<Of<S>>| grads.into_iter().skip(1).collect();
    let outputs = probe.backward(move |_, grads| Ok(last(grads))).on(&x).unwrap();
    let seeds = two_seeds().map(|seed| S::vector(&seed));
    let roots = [(&outputs[0], Some(&seeds[0])), (&outputs[1], Some(&seeds[1]))];
    let result = Of::<S>::run_backward(&roots, BackwardOptions::new());
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// `10.retain/…`: several backwards through one graph.
pub fn retain<S: Subject>(row: &Row) -> Outcome {
    let log = Log::default();
    let x = S::ones(DType::F32, 2);
    let seed = S::vector(&seed());
    let twice = |y: &Dyn<S>, first: BackwardOptions| {
        y.backward_with(&seed, first)?;
        y.backward_with(&seed, BackwardOptions::new())
    };
    let case = row.rest();
    if case == "builtin_twice" {
        let result = twice(&x.mul(&x).unwrap(), BackwardOptions::new());
        return Outcome::left::<S>(&log, Some(&x)).failing("backward", result);
    }
    let save = case != "twice_without_saved_tensors";
    let probe = Probe::<S>::new(&log, move |ctx, inputs| {
        ctx.set_output_grad_dtype(&[F32])?;
        if save {
            ctx.save_for_backward(inputs.get(0)?);
        }
        Ok(inputs.get(0)?.cast(DType::F16)?.into())
    });
    let probe = probe.backward(move |ctx, grads| {
        if save {
            ctx.saved_tensors()?;
        }
        Ok(grads[0].as_ref().unwrap().mul_scalar(2.0)?.into())
    });
    let y = probe.on(&x).unwrap()[0].clone();
    let first = BackwardOptions::new();
    let first = if case.starts_with("retain_graph") { first.retain_graph() } else { first };
    let result = twice(&y, first);
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// `10.other_errors`, those that can be made here: of an untracked root, of a root without its seed, of an unused input.
pub fn other_errors<S: Subject>() -> [Option<gradpact::Error>; 3] {
    let x = S::ones(DType::F32, 2);
    let sum = x.sum().unwrap();
    let unused = S::grad(&[(&sum, None)], &[&S::ones(DType::F32, 1)], BackwardOptions::new());
    [S::full(DType::F32, 1, 1.0).backward().err(), S::same(&x).unwrap().backward().err(), unused.err()]
}
