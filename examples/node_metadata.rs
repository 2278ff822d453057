//! Names, layers and numbers on the nodes of a graph, read back in backward: an extension point beside the dtype contract.
//!
//! `cargo run --example node_metadata`
//!
//! `node_creation_hook` is shown every node of a small mixed-precision model as it is created. It attaches metadata, and a
//! hook that in backward reads the metadata back. One table sets that beside the contract of the node: what it is stored in,
//! in which dtype its gradient must arrive, who said so, and in which it arrived. At the end the model runs once more
//! without any of it: metadata changes nothing.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use gradpact::autograd::{Node, NodeRef, node_creation_hook};
use gradpact::prelude::*;
use gradpact::{Cpu, Gradients};

/// `x·σ(x)`, stored in f16; its gradient arrives in f32.
#[autograd_function(out = f16, grad = f32)]
struct Silu;

impl Op for Silu {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.save_for_backward(&x);
        x.mul(&x.sigmoid()?)?.cast()
    }

    /// `G · σ(x) · (1 + x·(1 − σ(x)))`
    fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        let x: Value<f32> = ctx.saved()?;
        let s = x.sigmoid()?;
        let slope = x.mul(&s.neg()?.add_scalar(1.0)?)?.add_scalar(1.0)?.mul(&s)?;
        grad.mul(&slope)
    }
}

/// Rounds to f16 and declares nothing: its gradient arrives in f16.
#[autograd_function(out = f16)]
struct Store;

impl Op for Store {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f32>> {
        grad.cast()
    }
}

/// What the creation hook attaches to a node.
#[derive(Clone, Debug)]
struct Label {
    name: String,
    layer: &'static str,
    order: usize,
}

/// The name under which it is attached.
const LABEL: &str = "label";

/// One node when backward visits it.
#[derive(Debug)]
struct Line {
    /// The metadata.
    label: Label,
    /// The contract, of which metadata knows nothing: storage, gradient dtype, its source, and the dtype that came.
    contract: [String; 4],
}

type Lines = Arc<Mutex<Vec<Line>>>;

/// Which layer is being built.
type Layer = Rc<Cell<&'static str>>;

/// The hook: labels a node, and has backward note it.
fn labelling(layer: &Layer, lines: &Lines) -> impl Fn(&NodeRef<Cpu>) -> Result<()> + 'static {
    let (layer, lines, next) = (Rc::clone(layer), Arc::clone(lines), Cell::new(0));
    move |node| {
        let order = next.replace(next.get() + 1);
        node.set_metadata(LABEL, Label { name: node.name().to_owned(), layer: layer.get(), order });
        // Weak: the node owns the hook.
        let (again, lines) = (Arc::downgrade(node), Arc::clone(&lines));
        node.register_prehook(move |grads| {
            again.upgrade().map_or(Ok(()), |node| note(&lines, &node, grads))?;
            Ok(None)
        });
        Ok(())
    }
}

/// Reads the metadata of a node back, and writes it down beside the node's contract.
fn note(lines: &Lines, node: &Node<Cpu>, grads: &Gradients) -> Result<()> {
    let label = node.metadata::<Label>(LABEL).ok_or_else(|| Error::custom("a node without a label"))?;
    for (output, grad) in node.inputs().iter().zip(grads.iter()) {
        let contract = output.contract();
        let received = grad.as_ref().map_or("none".to_owned(), |grad| grad.dtype().to_string());
        let contract = [
            output.dtype().to_string(),
            contract.grad_dtype.to_string(),
            contract.source.to_string(),
            received,
        ];
        let line = Line { label: (*label).clone(), contract };
        lines.lock().map_err(|_| Error::custom("a reader panicked"))?.push(line);
    }
    Ok(())
}

/// A perceptron with an activation stored in f16. Returns the loss, and the parameters.
fn model(layer: &Layer) -> Result<(Tensor<f32>, [Tensor<f32>; 2])> {
    layer.set("parameters");
    let w1 = Tensor::<f32>::from_vec(vec![0.5, -0.25, 1.0, 0.75, -1.5, 0.125], [3, 2])?.requiring_grad()?;
    let w2 = Tensor::<f32>::from_vec(vec![1.0, -0.5], [2, 1])?.requiring_grad()?;
    layer.set("encoder");
    let x = Tensor::<f32>::from_vec(vec![0.1, 0.2, 0.3, 1.0, -2.0, 3.0], [2, 3])?;
    let hidden = Silu.apply(&x.matmul(&w1)?)?.mul_scalar(0.5)?;
    layer.set("head");
    let logits = Store.apply(&hidden.cast::<f32>()?.matmul(&w2)?)?;
    layer.set("loss");
    Ok((logits.cast::<f32>()?.mean()?, [w1, w2]))
}

/// The model, forward and backward: what backward notes with `labelled` nodes, and the gradients of the parameters.
fn run(labelled: bool) -> Result<(Vec<Line>, Vec<f32>)> {
    let (layer, lines) = (Layer::new(Cell::new("")), Lines::default());
    let (loss, parameters) = if labelled {
        node_creation_hook(labelling(&layer, &lines), || model(&layer))?
    } else {
        model(&layer)?
    };
    loss.backward()?;
    let mut grads = Vec::new();
    for parameter in parameters {
        grads.extend(parameter.grad().ok_or_else(|| Error::custom("no gradient came"))?.to_vec()?);
    }
    let lines = core::mem::take(&mut *lines.lock().map_err(|_| Error::custom("a hook panicked"))?);
    Ok((lines, grads))
}

const HEADINGS: [&str; 7] = ["order", "layer", "name", "stored", "gradient", "source", "received"];

/// The table: three columns of metadata, four of the contract.
fn table(lines: &[Line]) -> String {
    let cells = |line: &Line| {
        let Label { name, layer, order } = &line.label;
        let [stored, gradient, source, received] = &line.contract;
        let texts = [&order.to_string(), *layer, name, stored, gradient, source, received];
        texts.map(ToOwned::to_owned)
    };
    let rows: Vec<[String; 7]> =
        std::iter::once(HEADINGS.map(ToOwned::to_owned)).chain(lines.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let side = |row: &[String; 7], columns: core::ops::Range<usize>| {
        let padded = columns.map(|column| format!("{:<1$}", row[column], width(column)));
        padded.collect::<Vec<_>>().join("  ")
    };
    let left = side(&rows[0], 0..3).len();
    let mut text = format!("{:<left$}  │  contract (of the engine)\n", "metadata (attached)");
    for row in &rows {
        text += format!("{}  │  {}", side(row, 0..3), side(row, 3..7)).trim_end();
        text += "\n";
    }
    text
}

fn main() -> Result<()> {
    let (lines, grads) = run(true)?;
    println!("Every node, in the order in which backward visited it:\n\n{}", table(&lines));
    println!(
        "Left of the line is metadata: an extension point. A node creation hook attached it, a hook on the node read\n\
         it back, and the engine never looks at it. Right of the line is the contract: declared by a Function, or the\n\
         default, or carried by an operation, and enforced whether or not a node has metadata."
    );
    let (unlabelled, without) = run(false)?;
    check(&lines);
    assert!(unlabelled.is_empty());
    assert_eq!(grads, without);
    println!("\nThe same model without metadata: the same gradients, bit for bit.");
    Ok(())
}

/// What the table shows is what was declared; and every node that was created was visited, the last first.
fn check(lines: &[Line]) {
    for Line { label, contract: [_, gradient, _, received] } in lines {
        assert_eq!(gradient, received, "{label:?}");
    }
    let of = |name: &str| lines.iter().find(|line| line.label.name == name).map(|line| line.contract.clone());
    let contract = |words: [&str; 4]| Some(words.map(ToOwned::to_owned));
    assert_eq!(of("Silu"), contract(["f16", "f32", "declared", "f32"]));
    assert_eq!(of("Store"), contract(["f16", "f16", "default", "f16"]));
    assert_eq!(of("MulScalar"), contract(["f16", "f32", "carried", "f32"]));
    let orders: Vec<_> = lines.iter().map(|line| line.label.order).collect();
    assert_eq!(orders, (0..lines.len()).rev().collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_sets_the_metadata_of_each_node_beside_its_contract() {
        let (lines, _) = run(true).unwrap();
        check(&lines);
        let text = table(&lines);
        let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["metadata", "(attached)", "│", "contract", "(of", "the", "engine)"]);
        assert_eq!(rows.len(), 2 + lines.len());
        for row in [
            ["9", "loss", "Mean", "│", "f32", "f32", "carried", "f32"],
            ["7", "head", "Store", "│", "f16", "f16", "default", "f16"],
            ["4", "encoder", "MulScalar", "│", "f16", "f32", "carried", "f32"],
            ["3", "encoder", "Silu", "│", "f16", "f32", "declared", "f32"],
            ["1", "parameters", "AccumulateGrad", "│", "f32", "f32", "default", "f32"],
            ["0", "parameters", "AccumulateGrad", "│", "f32", "f32", "default", "f32"],
        ] {
            assert!(rows.iter().any(|found| *found == row), "{row:?} is not in\n{text}");
        }
    }

    #[test]
    fn metadata_changes_no_gradient() {
        let ((labelled, with), (unlabelled, without)) = (run(true).unwrap(), run(false).unwrap());
        assert!(!labelled.is_empty() && unlabelled.is_empty());
        assert_eq!(with, without);
    }
}
