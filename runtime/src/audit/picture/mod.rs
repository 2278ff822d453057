//! The way of the gradients as a picture: nodes by name and label, an edge for each gradient, coloured by its dtype, and
//! marked where it was narrowed.

mod dot;
#[cfg(feature = "picture")]
mod svg;

use std::collections::{BTreeMap, HashMap};

use super::Audit;
use super::row::{Conversion, Happened, Outcome, Row, Stage};
use crate::dtype::{Census, DType};
use crate::observe::NodeInfo;

/// More nodes than this are folded.
const READABLE: usize = 200;

/// A drawing of an audit, to be written as DOT or as SVG.
///
/// Up to 200 nodes are drawn one by one; of more, those with the same label are drawn as one, and those without a label by the
/// name of their Function. If that is not enough only the first part of a label (before `/`) counts.
#[derive(Clone, Debug)]
pub struct Picture {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// One box.
#[derive(Clone, Debug)]
struct Node {
    title: String,
    /// Further lines: label, storage and gradient dtype.
    lines: Vec<String>,
    kind: Kind,
    /// Whether values of a gradient were lost inside.
    lossy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Seed,
    Operation,
    Function,
    Leaf,
}

/// One arrow, for all gradients that go from one box to another in one dtype.
#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    to: usize,
    /// `None` if it was refused.
    dtype: Option<DType>,
    happened: Happened,
    /// What is written at it; empty where nothing happened.
    text: String,
}

impl Audit {
    /// Draws it.
    pub fn picture(&self) -> Picture {
        let all: Vec<&NodeInfo> = self.rows().flat_map(nodes_of).collect();
        let by_number = |node: &NodeInfo| node.sequence_nr.to_string();
        let name = |node: &NodeInfo| if node.is_leaf { "leaf" } else { node.function }.to_owned();
        let by_label = |node: &NodeInfo| node.label.clone().unwrap_or_else(|| name(node));
        let by_part = |node: &NodeInfo| {
            let label = by_label(node);
            label.split('/').next().unwrap_or_default().to_owned()
        };
        if distinct(&all, &by_number) <= READABLE {
            draw(self, &by_number, false)
        } else if distinct(&all, &by_label) <= READABLE {
            draw(self, &by_label, true)
        } else {
            draw(self, &by_part, true)
        }
    }
}

fn nodes_of(row: &Row) -> impl Iterator<Item = &NodeInfo> {
    row.sender.iter().map(|(node, _)| node).chain([&row.receiver])
}

fn distinct(nodes: &[&NodeInfo], key: &dyn Fn(&NodeInfo) -> String) -> usize {
    nodes.iter().map(|node| key(node)).collect::<std::collections::HashSet<_>>().len()
}

/// Gradients that become one arrow.
type Route = (usize, usize, Option<DType>, bool);

fn draw(audit: &Audit, key: &dyn Fn(&NodeInfo) -> String, folded: bool) -> Picture {
    let mut boxes = Boxes { key, folded, numbers: HashMap::new(), nodes: Vec::new() };
    let mut routes: BTreeMap<Route, Vec<&Row>> = BTreeMap::new();
    for row in audit.rows() {
        let from = match &row.sender {
            Some((sender, _)) => boxes.number(sender),
            None => boxes.seed(),
        };
        let to = boxes.number(&row.receiver);
        boxes.describe(to, row);
        if folded && from == to {
            // Inside one fold: told on the box, if something was lost.
            if row.happened() == Happened::Narrowed {
                boxes.nodes[to].lose(&inside(row.arrived, row.delivered(), row.census()));
            }
            continue;
        }
        let narrowed = matches!(row.happened(), Happened::Narrowed | Happened::Refused);
        routes.entry((from, to, row.delivered(), narrowed)).or_default().push(row);
    }
    for conversion in audit.conversions().filter(|conversion| conversion.loses_gradient()) {
        boxes.lose(conversion);
    }
    let edges = routes.into_iter().map(|((from, to, dtype, _), rows)| edge(from, to, dtype, &rows)).collect();
    Picture { nodes: boxes.nodes, edges }
}

fn edge(from: usize, to: usize, dtype: Option<DType>, rows: &[&Row]) -> Edge {
    let happened = rows[0].happened();
    let mut total = Census::default();
    rows.iter().filter_map(|row| row.census()).for_each(|census| total += census);
    let times = if rows.len() > 1 { format!("{} × ", rows.len()) } else { String::new() };
    let counted = if total == Census::default() { String::new() } else { format!(": {total}") };
    let text = match (&rows[0].outcome, happened) {
        (Outcome::Refused(_), _) => format!("{times}refused: {} came", rows[0].arrived),
        (Outcome::Delivered { dtype, .. }, Happened::Narrowed) => {
            format!("{times}{} → {dtype}{counted}", rows[0].arrived)
        }
        (Outcome::Delivered { dtype, .. }, Happened::Widened) => {
            format!("{times}{} → {dtype}", rows[0].arrived)
        }
        _ => times.trim_end().to_owned(),
    };
    Edge { from, to, dtype, happened, text }
}

struct Boxes<'a> {
    key: &'a dyn Fn(&NodeInfo) -> String,
    folded: bool,
    numbers: HashMap<String, usize>,
    nodes: Vec<Node>,
}

impl Boxes<'_> {
    fn number(&mut self, node: &NodeInfo) -> usize {
        let key = (self.key)(node);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let kind = match (node.is_leaf, node.is_user_code) {
            (true, _) => Kind::Leaf,
            (_, true) => Kind::Function,
            _ => Kind::Operation,
        };
        let mut box_ = match (&node.label, self.folded, kind) {
            (_, true, _) => Node::new(key.clone(), Kind::Operation),
            (Some(label), _, Kind::Leaf) => Node::new(label.clone(), kind),
            (None, _, Kind::Leaf) => Node::new("leaf".to_owned(), kind),
            _ => Node::new(node.function.to_owned(), kind),
        };
        if let (Some(label), false, false) = (&node.label, self.folded, node.is_leaf) {
            box_.lines.push(label.clone());
        }
        self.nodes.push(box_);
        self.numbers.insert(key, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn seed(&mut self) -> usize {
        if let Some(number) = self.nodes.iter().position(|node| node.kind == Kind::Seed) {
            return number;
        }
        self.nodes.push(Node::new("seed".to_owned(), Kind::Seed));
        self.nodes.len() - 1
    }

    /// Notes storage and gradient dtype of the output that a gradient belongs to.
    fn describe(&mut self, number: usize, row: &Row) {
        if self.folded {
            return;
        }
        let line = format!("{} {} · gradient {}", row.storage, row.shape, row.declared_text());
        let lines = &mut self.nodes[number].lines;
        if !lines.contains(&line) {
            lines.push(line);
        }
    }

    /// Marks the box in which a gradient lost values.
    fn lose(&mut self, conversion: &Conversion) {
        let (Stage::Function { backward: Some((node, _)), .. } | Stage::Sum { node, .. }) = &conversion.stage
        else {
            return;
        };
        if let Some(&number) = self.numbers.get(&(self.key)(node)) {
            let lost = &mut self.nodes[number];
            lost.lose(&inside(conversion.from, Some(conversion.to), conversion.census));
        }
    }
}

/// What is written into a box in which a gradient lost something.
fn inside(from: DType, to: Option<DType>, census: Option<Census>) -> String {
    let to = to.map_or_else(|| "–".to_owned(), |to| to.to_string());
    let census = census.map(|census| format!(": {census}")).unwrap_or_default();
    format!("inside: {from} → {to}{census}")
}

impl Node {
    fn new(title: String, kind: Kind) -> Self {
        Self { title, lines: Vec::new(), kind, lossy: false }
    }

    /// Marks it, and writes what happened, the first few times.
    fn lose(&mut self, what: &str) {
        self.lossy = true;
        match self.lines.iter().filter(|line| line.starts_with("inside: ")).count() {
            0..3 => self.lines.push(what.to_owned()),
            3 => self.lines.push("inside: and more".to_owned()),
            _ => {}
        }
    }
}

/// The colour of a gradient's dtype: told apart by people who see colours differently too, and told in words besides.
fn colour(dtype: Option<DType>) -> &'static str {
    match dtype {
        Some(DType::F64) => "#332288",
        Some(DType::F32) => "#117733",
        Some(DType::BF16) => "#882255",
        Some(DType::F16) => "#b8860b",
        Some(_) => "#cc6677",
        None => "#000000",
    }
}

/// What narrowing and loss are marked with.
const ALARM: &str = "#d40000";
