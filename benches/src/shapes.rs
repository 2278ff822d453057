//! Graphs of other shapes than a chain, at growing sizes: does a node cost the same in all of them?
//!
//! Each is built by the dynamic layer, whose Functions take any number of inputs, and by the hand-written tape.

use gradpact::DynTensor;

use crate::Outcome;
use crate::measure::{Column, Contender, Group, timed};
use crate::node::Pass;
use crate::tape::Tensor as TapeTensor;
use crate::torch::Torch;

/// What is measured of a graph.
const METRICS: [&str; 3] = ["forward, a node", "backward, an edge", "drop, a node"];

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// A tensor that can be passed on: what both libraries have in common.
trait Passes: Clone + 'static {
    fn leaf() -> Outcome<Self>;
    fn pass(inputs: &[&Self]) -> Outcome<Self>;
    fn backward(&self) -> Outcome<()>;
}

impl Passes for DynTensor {
    fn leaf() -> Outcome<Self> {
        Ok(Self::from_vec(vec![1.5_f32], [1])?.requiring_grad()?)
    }

    fn pass(inputs: &[&Self]) -> Outcome<Self> {
        let mut outputs = gradpact::apply(Pass { inputs: inputs.len() }, inputs)?;
        Ok(outputs.pop().ok_or("no output")?)
    }

    fn backward(&self) -> Outcome<()> {
        Ok(self.backward()?)
    }
}

impl Passes for TapeTensor {
    fn leaf() -> Outcome<Self> {
        Ok(Self::leaf(&[1.5]))
    }

    fn pass(inputs: &[&Self]) -> Outcome<Self> {
        Ok(Self::pass(inputs))
    }

    fn backward(&self) -> Outcome<()> {
        self.backward(&[1.0]);
        Ok(())
    }
}

/// A shape, with how many nodes and edges it has.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One after the other.
    Chain,
    /// One tensor goes to many functions, whose results go to one.
    Fan,
    /// Level by level, two functions of one tensor, and one of both.
    Ladder,
    /// Many leaves go to one function.
    Leaves,
}

impl Shape {
    const ALL: [Self; 4] = [Self::Chain, Self::Fan, Self::Ladder, Self::Leaves];

    fn name(self) -> &'static str {
        match self {
            Self::Chain => "a chain",
            Self::Fan => "fan-out and fan-in",
            Self::Ladder => "a ladder of diamonds",
            Self::Leaves => "many leaves",
        }
    }

    /// How many edges there are for `nodes` nodes, leaves counted.
    fn edges(self, nodes: usize) -> usize {
        match self {
            Self::Chain | Self::Leaves => nodes,
            Self::Fan => 2 * nodes,
            Self::Ladder => nodes / 3 * 4,
        }
    }

    /// Builds it on a leaf, from `nodes` nodes, give or take two.
    fn build<T: Passes>(self, x: T, nodes: usize) -> Outcome<T> {
        match self {
            Self::Chain => (0..nodes).try_fold(x, |y, _| T::pass(&[&y])),
            Self::Fan => {
                let middle = (0..nodes).map(|_| T::pass(&[&x])).collect::<Outcome<Vec<_>>>()?;
                T::pass(&middle.iter().collect::<Vec<_>>())
            }
            Self::Ladder => (0..nodes / 3).try_fold(x, |y, _| {
                let (a, b) = (T::pass(&[&y])?, T::pass(&[&y])?);
                T::pass(&[&a, &b])
            }),
            Self::Leaves => {
                let leaves = (0..nodes).map(|_| T::leaf()).collect::<Outcome<Vec<_>>>()?;
                T::pass(&leaves.iter().collect::<Vec<_>>())
            }
        }
    }
}

fn contender<T: Passes>(column: Column, shape: Shape, nodes: usize) -> Contender {
    Contender::repeating(column, move || {
        let (end, forward) = timed(|| shape.build(T::leaf()?, nodes))?;
        let ((), backward) = timed(|| end.backward())?;
        let ((), dropping) = timed(|| {
            drop(end);
            Ok(())
        })?;
        let per = |seconds: f64, count: usize| seconds * 1e9 / count as f64;
        let edges = shape.edges(nodes);
        Ok(vec![per(forward, nodes), per(backward, edges), per(dropping, nodes)])
    })
}

/// The groups of this module.
///
/// # Errors
/// None.
pub fn groups(_: &Torch) -> Outcome<Vec<Group>> {
    let group = |shape: Shape, nodes: usize| {
        let tape = Column::Baseline("hand-written tape".to_owned());
        let contenders = vec![
            contender::<DynTensor>(Column::Ours, shape, nodes),
            contender::<TapeTensor>(tape, shape, nodes),
        ];
        Group::new(format!("{}, {nodes} nodes", shape.name()), "ns", contenders).metrics(&METRICS)
    };
    Ok(Shape::ALL.into_iter().flat_map(|shape| SIZES.map(|nodes| group(shape, nodes))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tape_and_graph_send_a_gradient_of_one_along_every_path() {
        for (shape, nodes, paths) in [(Shape::Chain, 5, 1.0), (Shape::Fan, 5, 5.0), (Shape::Ladder, 15, 32.0)]
        {
            let x = <DynTensor as Passes>::leaf().unwrap();
            shape.build(x.clone(), nodes).unwrap().backward().unwrap();
            let y = <TapeTensor as Passes>::leaf().unwrap();
            Passes::backward(&shape.build(y.clone(), nodes).unwrap()).unwrap();
            let grads = (x.grad().unwrap().item::<f32>().unwrap(), y.take_grad().unwrap()[0]);
            assert_eq!(grads, (paths, paths), "{shape:?}");
        }
    }
}
