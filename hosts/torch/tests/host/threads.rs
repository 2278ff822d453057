//! Several threads: over graphs of their own, and over one.

use gradpact::prelude::*;
use gradpact_torch::Torch;
use tch::Kind;

use crate::support::{array, backward, call, leaf, read};

/// `2x`, which fails when told to.
struct Double {
    fails: bool,
}

impl Function<Torch> for Double {
    fn name(&self) -> &'static str {
        "Double"
    }

    fn forward(&self, ctx: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        let x = inputs.get(0)?;
        ctx.save_for_backward([x]);
        Ok(array(&**x.array() * 2.0).into())
    }

    fn backward(&self, ctx: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        if self.fails {
            return Err(Error::custom("as told"));
        }
        assert_eq!(ctx.saved_tensor(0)?.shape()[..], [1]);
        Ok(array(&**grads[0].as_ref().unwrap().array() * 2.0).into())
    }
}

#[test]
fn threads_run_graphs_of_their_own_and_failures_stay_where_they_are() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..500 {
                    let fails = (thread + round) % 3 == 0;
                    let x = leaf(&[1.0], Kind::Float);
                    let y = call(Double { fails }, &[&x]).unwrap().remove(0);
                    let y = call(Double { fails: false }, &[&y]).unwrap().remove(0);
                    assert_eq!(backward(&y).is_err(), fails);
                    if !fails {
                        assert_eq!(read(&x.grad()), [4.0]);
                    }
                }
            });
        }
    });
}

#[test]
fn threads_run_backward_over_one_graph() {
    let x = leaf(&[1.0], Kind::Double);
    let y = call(Double { fails: false }, &[&x]).unwrap().remove(0);
    let y = call(Double { fails: false }, &[&y]).unwrap().remove(0);
    let shared = gradpact_torch::Array::new("test", y).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let keep = BackwardOptions::new().retain_graph();
                    gradpact_torch::backward(&[(shared.tensor(), None)], keep).unwrap();
                }
            });
        }
    });
    assert_eq!(read(&x.grad()), [4.0 * 800.0]);
}

#[test]
fn a_graph_made_on_one_thread_runs_and_dies_on_another() {
    let x = leaf(&[1.0], Kind::Float);
    let y = call(Double { fails: false }, &[&x]).unwrap().remove(0);
    std::thread::spawn(move || backward(&y).unwrap()).join().unwrap();
    assert_eq!(read(&x.grad()), [2.0]);
}
