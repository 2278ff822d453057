//! Large and odd graphs: long chains, backward inside backward.

use std::sync::{Arc, Mutex};

use gradpact::prelude::*;
use gradpact_torch::Torch;
use tch::Kind;

use crate::support::{array, backward, call, leaf, read};

/// `−x`.
struct Neg;

impl Function<Torch> for Neg {
    fn name(&self) -> &'static str {
        "Neg"
    }

    fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        Ok(array(inputs.get(0)?.array().neg()).into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        Ok(array(grads[0].as_ref().unwrap().array().neg()).into())
    }
}

fn chain(x: &tch::Tensor, length: usize) -> tch::Tensor {
    let mut y = x.shallow_clone();
    for _ in 0..length {
        y = call(Neg, &[&y]).unwrap().remove(0);
    }
    y
}

#[test]
fn a_chain_of_a_hundred_thousand_nodes_runs_and_drops_on_a_small_stack() {
    let run = || {
        let x = leaf(&[1.0], Kind::Float);
        let y = chain(&x, 100_000);
        backward(&y).unwrap();
        assert_eq!(read(&x.grad()), [1.0]);
        drop(chain(&x, 100_000));
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

/// Runs in its backward the backward of another one, `depth` times inside each other.
struct Nested {
    depth: usize,
    threads: Arc<Mutex<std::collections::HashSet<std::thread::ThreadId>>>,
    fails: bool,
}

impl Function<Torch> for Nested {
    fn name(&self) -> &'static str {
        "Nested"
    }

    fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        Ok(array(&**inputs.get(0)?.array() * 1.0).into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        self.threads.lock().unwrap().insert(std::thread::current().id());
        if self.depth == 0 {
            return if self.fails { Err(Error::custom("the bottom")) } else { Ok(grads) };
        }
        let inner = Self { depth: self.depth - 1, threads: Arc::clone(&self.threads), fails: self.fails };
        tch::with_grad(|| {
            let x = leaf(&[1.0], Kind::Float);
            backward(&call(inner, &[&x])?[0])
        })?;
        Ok(grads)
    }
}

#[test]
fn backward_inside_backward_goes_deep_and_its_error_comes_up_typed() {
    for fails in [false, true] {
        let threads = Arc::new(Mutex::new(std::collections::HashSet::new()));
        let x = leaf(&[1.0], Kind::Float);
        let y = call(Nested { depth: 150, threads: Arc::clone(&threads), fails }, &[&x]).unwrap().remove(0);
        match backward(&y) {
            Ok(()) => assert!(!fails),
            Err(error) => assert!(fails && error.root().to_string() == "the bottom", "{error}"),
        }
        assert!(threads.lock().unwrap().len() > 1, "past a depth of 60 libtorch goes to threads of its own");
    }
}

/// Runs a backward that leads to its own node.
struct Bites {
    tail: Arc<Mutex<Option<tch::Tensor>>>,
}

impl Function<Torch> for Bites {
    fn name(&self) -> &'static str {
        "Bites"
    }

    fn forward(&self, _: &mut Context<Torch>, inputs: &Inputs<'_, Torch>) -> Result<Outputs<Torch>> {
        Ok(array(&**inputs.get(0)?.array() * 1.0).into())
    }

    fn backward(&self, _: &Context<Torch>, grads: Gradients<Torch>) -> Result<Gradients<Torch>> {
        let tail = self.tail.lock().unwrap().as_ref().map(tch::Tensor::shallow_clone);
        gradpact_torch::backward(&[(&tail.unwrap(), None)], BackwardOptions::new().retain_graph())?;
        Ok(grads)
    }
}

#[test]
fn a_backward_that_comes_back_to_its_own_node_is_an_error_and_no_deadlock() {
    let x = leaf(&[1.0], Kind::Float);
    let tail = Arc::new(Mutex::new(None));
    let y = call(Bites { tail: Arc::clone(&tail) }, &[&x]).unwrap().remove(0);
    *tail.lock().unwrap() = Some(y.shallow_clone());
    let error = backward(&y).unwrap_err();
    assert!(error.to_string().contains("`Bites` was entered again"), "{error}");
    // The circle through the struct is the test's own.
    tail.lock().unwrap().take();
}
