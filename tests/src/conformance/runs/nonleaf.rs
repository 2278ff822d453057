//! Groups 8 and 9: derivatives of derivatives, and derivatives with respect to what is not a leaf.

use std::sync::{Arc, Mutex};

use gradpact::function::Graph as _;
use gradpact::ops::DynTensorOps as _;
use gradpact::{BackwardOptions, DType, GradDType, apply};

use super::F32;
use crate::conformance::num;
use crate::conformance::outcome::Outcome;
use crate::conformance::probe::{Log, Probe};
use crate::conformance::row::{Row, declaration};
use crate::conformance::subject::{Dyn, Of, Subject};

fn one_grad<S: Subject>(y: &Dyn<S>, x: &Dyn<S>, seed: &Dyn<S>, options: BackwardOptions) -> Dyn<S> {
    S::grad(&[(y, Some(seed))], &[x], options).unwrap().remove(0).unwrap()
}

fn read<S: Subject>(tensor: Option<&Dyn<S>>) -> Vec<Option<num::Num>> {
    vec![tensor.map(S::read)]
}

/// What is told of a received gradient: that it can be differentiated, that this is recorded, and its graph.
pub const IN_BACKWARD: &str = "in_backward";

/// The facts of [`double`].
pub const DOUBLE: [&str; 3] = ["first_order gx", "second_order wrt x", "second_order wrt v"];

/// `8.double/DECLARED/x_DTYPE`: first and second derivatives of x² at 3.
pub fn double<S: Subject>(row: &Row) -> Outcome {
    let [declared, x] = row.parts()[..] else { panic!("{}", row.id) };
    let (declared, x_dtype) = (declaration(declared), num::dtype(x.trim_start_matches("x_")).unwrap());
    let (log, notes) = (Log::default(), Notes::default());
    let x = S::leaf(x_dtype, &[3.0]);
    let v = S::leaf(DType::F32, &[0.1]);
    let y = &square::<S>(&log, &notes, declared, false).on(&x).unwrap()[0];
    let gx = one_grad::<S>(y, &x, &v, BackwardOptions::new().create_graph());
    let second = S::grad(&[(&gx, None)], &[&x, &v], BackwardOptions::new().allow_unused()).unwrap();
    Outcome::left::<S>(&log, None)
        .noting(DOUBLE[0], read::<S>(Some(&gx)))
        .noting(DOUBLE[1], read::<S>(second[0].as_ref()))
        .noting(DOUBLE[2], read::<S>(second[1].as_ref()))
        .telling(IN_BACKWARD, notes.lock().unwrap().clone())
}

type Notes = Arc<Mutex<String>>;

/// x² in f16, perhaps marked as differentiable once; its backward notes the facts of [`IN_BACKWARD`].
fn square<S: Subject>(log: &Log, notes: &Notes, declared: Option<GradDType>, once: bool) -> Probe<S> {
    let square = Probe::<S>::new(log, move |ctx, inputs| {
        let x = inputs.get(0)?;
        ctx.save_for_backward(x);
        if let Some(declared) = declared {
            ctx.set_output_grad_dtype(&[declared])?;
        }
        if once {
            ctx.mark_once_differentiable();
        }
        Ok(x.mul(x)?.cast(DType::F16)?.into())
    });
    let notes = Arc::clone(notes);
    square.backward(move |ctx, grads| {
        let g = grads[0].as_ref().unwrap();
        let tracked = Of::<S>::is_tracked(g);
        *notes.lock().unwrap() = format!("{tracked} {} {}", S::is_recording(), S::graph(g));
        let x = ctx.saved_tensor(0)?.cast(g.dtype())?;
        Ok(x.add(&x)?.mul(g)?.into())
    })
}

/// What a measured case tells of its backward, its graph in the words of `graph`.
pub fn in_backward(row: &Row, graph: impl FnOnce(&str) -> String) -> String {
    let told = &row.json["extra"][IN_BACKWARD][0];
    let flag = |name: &str| told[name].as_bool().unwrap_or_default();
    let graph = graph(told["g.grad_fn"].as_str().unwrap_or_default());
    format!("{} {} {graph}", flag("g.requires_grad"), flag("grad_enabled"))
}

/// Whether the result of a case of [`once`] requires a gradient, among its facts.
pub const REQUIRES_GRAD: &str = "gx.requires_grad";

/// Whether the seed of a case of [`once`] requires no gradient.
pub fn is_plain(row: &Row) -> bool {
    row.rest() == "grad_output_without_requires_grad"
}

/// `8.once_differentiable/DECLARED`: the first derivative of x² at 3, and an attempt at the second; or with a gradient that
/// requires none, declared f32.
pub fn once<S: Subject>(row: &Row) -> Outcome {
    let (log, notes) = (Log::default(), Notes::default());
    let plain = is_plain(row);
    let declared = if plain { Some(F32) } else { declaration(row.rest()) };
    let x = S::leaf(DType::F32, &[3.0]);
    let v = if plain { S::tensor(DType::F32, &[0.1]) } else { S::leaf(DType::F32, &[0.1]) };
    let y = &square::<S>(&log, &notes, declared, true).on(&x).unwrap()[0];
    let gx = one_grad::<S>(y, &x, &v, BackwardOptions::new().create_graph());
    let result = gx.backward();
    let outcome = Outcome::left::<S>(&log, None).telling(IN_BACKWARD, notes.lock().unwrap().clone());
    let outcome = outcome.failing("second backward", result);
    if plain {
        outcome.telling(REQUIRES_GRAD, Of::<S>::is_tracked(&gx).to_string())
    } else {
        outcome.noting("gx", read::<S>(Some(&gx)))
    }
}

/// The facts of [`cast_is_differentiable`]: a derivative, and two graphs.
pub const CAST: (&str, [&str; 2]) = ("d(gx*1e-10)/dv", ["graph of received g", "graph of gx"]);

/// `8.cast_is_differentiable/DECLARED`: the second derivative goes through the conversions of the first.
pub fn cast_is_differentiable<S: Subject>(row: &Row) -> Outcome {
    let (log, notes) = (Log::default(), Notes::default());
    let x = S::leaf(DType::F32, &[3.0]);
    let v = S::leaf(DType::F32, &[0.1]);
    let seen = Arc::clone(&notes);
    let probe = Probe::<S>::cast(&log, DType::F16, declaration(row.rest())).backward(move |_, grads| {
        *seen.lock().unwrap() = S::graph(grads[0].as_ref().unwrap());
        Ok(grads)
    });
    let y = &probe.on(&x).unwrap()[0];
    let gx = one_grad::<S>(y, &x, &v, BackwardOptions::new().create_graph());
    let seed = S::tensor(DType::F32, &[1e-10]);
    let dv = one_grad::<S>(&gx, &v, &seed, BackwardOptions::new());
    let (fact, graphs) = CAST;
    let outcome = Outcome::left::<S>(&log, None).noting(fact, read::<S>(Some(&dv)));
    outcome.telling(graphs[0], notes.lock().unwrap().clone()).telling(graphs[1], S::graph(&gx))
}

/// The facts of [`nonleaf`].
pub const NONLEAF: [&str; 6] = [
    "grad(z, y)",
    "grad(y, y)",
    "grad(y*2, y)",
    "grad(y.float()*2, y)",
    "grad(z, (y, x))",
    "unused y, materialize_grads=True",
];

/// `9.nonleaf/DECLARED`: gradients with respect to the output y of one Function, through another and through operations.
pub fn nonleaf<S: Subject>(row: &Row) -> Outcome {
    let (log, z_log) = (Log::default(), Log::default());
    let x = S::ones(DType::F32, 1);
    let y = &Probe::<S>::cast(&log, DType::F16, declaration(row.rest())).on(&x).unwrap()[0];
    let z = &apply(Probe::<S>::cast(&z_log, DType::F16, Some(F32)), &[y]).unwrap()[0];
    let g = S::tensor(DType::F32, &[0.1]);
    let keep = BackwardOptions::new().retain_graph();
    let one = |of: &Dyn<S>| read::<S>(Some(&one_grad::<S>(of, y, &g, keep)));
    let other = S::ones(DType::F32, 1);
    let other = other.add(&other).unwrap();
    let both = S::grad(&[(z, Some(&g))], &[y, &x], keep).unwrap();
    let unused = S::grad(&[(&other, Some(&g))], &[y], keep.materialize_grads()).unwrap();
    Outcome::left::<S>(&log, None)
        .noting(NONLEAF[0], one(z))
        .noting(NONLEAF[1], one(y))
        .noting(NONLEAF[2], one(&y.mul_scalar(2.0).unwrap()))
        .noting(NONLEAF[3], one(&y.cast(DType::F32).unwrap().mul_scalar(2.0).unwrap()))
        .noting(NONLEAF[4], both.iter().map(|grad| grad.as_ref().map(S::read)).collect())
        .noting(NONLEAF[5], read::<S>(unused[0].as_ref()))
}

/// What PyTorch did in a case of [`nonleaf`]. What follows there is `backward(inputs=…)` and gradient edges, which we have not.
pub fn measured_nonleaf(row: &Row) -> Outcome {
    let mut measured = row.measured(&NONLEAF);
    measured.received.truncate(1);
    measured
}
