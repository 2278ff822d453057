//! Group 1: every output dtype, declaration and incoming dtype, through every way into a Function.

use gradpact::function::Graph as _;
use gradpact::ops::DynTensorOps as _;
use gradpact::{BackwardOptions, DType, Result, Shape, apply};

use super::F32;
use crate::conformance::num;
use crate::conformance::outcome::Outcome;
use crate::conformance::probe::{Giver, Log, Probe};
use crate::conformance::row::{Row, declaration};
use crate::conformance::subject::{Dyn, Of, Subject};

/// `1.direct`, `1.clone` and `1.function`: `/OUT/DECLARED/INCOMING`.
pub fn entry<S: Subject>(row: &Row) -> Outcome {
    let [out, declared, _] = row.parts()[..] else { panic!("{}", row.id) };
    let (out, declared) = (num::dtype(out).unwrap(), declaration(declared));
    let sent = row.incoming();
    let log = Log::default();
    let x = S::ones(DType::F32, sent.bits.len());
    let y = &Probe::<S>::cast(&log, out, declared).on(&x).unwrap()[0];
    let sent = S::vector(&sent);
    let result = match row.id.split_once('/').unwrap().0 {
        "1.direct" => y.backward_with(&sent, BackwardOptions::new()),
        "1.clone" => {
            let same = S::same(y).unwrap();
            assert_eq!(same.dtype(), out);
            same.backward_with(&sent, BackwardOptions::new())
        }
        _ => apply(Giver::<S>::kept(sent), &[y]).and_then(|scalar| scalar[0].backward()),
    };
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// `1.float_sum/OUT/DECLARED`: a conversion before the Function sees the gradient.
pub fn float_sum<S: Subject>(row: &Row) -> Outcome {
    let [out, declared] = row.parts()[..] else { panic!("{}", row.id) };
    let (out, declared) = (num::dtype(out).unwrap(), declaration(declared));
    let log = Log::default();
    let x = S::ones(DType::F32, 1);
    let y = &Probe::<S>::cast(&log, out, declared).on(&x).unwrap()[0];
    let result = loss::<S>(y);
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// `y.float().sum() * 1e-10`, and its backward.
fn loss<S: Subject>(y: &Dyn<S>) -> Result<()> {
    y.cast(DType::F32)?.sum()?.mul_scalar(1e-10)?.backward()
}

/// `1.down/OPERATION/DECLARED`: `OPERATION(y) * 1e-10` for an f16 y of [1, 2].
pub fn down<S: Subject>(row: &Row, operation: impl Fn(&Dyn<S>) -> Result<Dyn<S>>) -> Outcome {
    let declared = declaration(row.rest().rsplit_once('/').unwrap().1);
    let log = Log::default();
    let x = S::leaf(DType::F32, &[1.0, 2.0]);
    let y = &Probe::<S>::cast(&log, DType::F16, declared).on(&x).unwrap()[0];
    let result = operation(y).and_then(|loss| loss.mul_scalar(1e-10)?.backward());
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// `1.chain/FIRST/SECOND/MODE`: two Functions stored in f16, one after the other.
pub fn chain<S: Subject>(row: &Row) -> Outcome {
    let (first, rest) = row.rest().split_once('/').unwrap();
    let (second, mode) = rest.split_once('/').unwrap();
    let (log, outer_log) = (Log::default(), Log::default());
    let x = S::ones(DType::F32, 1);
    let y1 = &Probe::<S>::cast(&log, DType::F16, declaration(first)).on(&x).unwrap()[0];
    let y2 = &Probe::<S>::cast(&outer_log, DType::F16, declaration(second)).on(y1).unwrap()[0];
    let result = if mode == "direct" {
        y2.backward_with(&S::tensor(DType::F32, &[1e-10]), BackwardOptions::new())
    } else {
        loss::<S>(y2)
    };
    let outcome = Outcome::left::<S>(&log, Some(&x)).failing("backward", result);
    outcome.noting("outer_received", outer_log.firsts())
}

/// `1.implicit_scalar_grad`: a scalar needs no seed.
pub fn implicit_seed<S: Subject>() -> Outcome {
    let log = Log::default();
    let x = S::ones(DType::F32, 2);
    let forward = Probe::<S>::new(&log, |ctx, _| {
        ctx.set_output_grad_dtype(&[F32])?;
        Ok(S::full(DType::F16, Shape::scalar(), 2.0).into())
    });
    let spread = |grad: &Dyn<S>| S::full(DType::F32, 2, S::read(grad).values()[0]);
    let y = forward.backward(move |_, grads| Ok(grads[0].as_ref().map(spread).unwrap().into())).on(&x);
    let result = y.and_then(|y| y[0].backward());
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}

/// `1.multi_root_same_y`: one tensor as two roots.
pub fn two_roots<S: Subject>() -> Outcome {
    let log = Log::default();
    let x = S::ones(DType::F32, 1);
    let y = &Probe::<S>::cast(&log, DType::F16, Some(F32)).on(&x).unwrap()[0];
    let seeds = [1.0, 2_f64.powi(-20)].map(|seed| S::tensor(DType::F32, &[seed]));
    let roots = [(y, Some(&seeds[0])), (y, Some(&seeds[1]))];
    let result = Of::<S>::run_backward(&roots, BackwardOptions::new());
    Outcome::left::<S>(&log, Some(&x)).failing("backward", result)
}
