//! Two audits side by side: the same program with and without a declaration.

use core::fmt;
use std::collections::HashMap;

use super::Audit;
use super::row::Row;
use super::table::{self, Border};

/// What differs between two audits of the same program.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// In the order in which they came.
    pub differences: Vec<Difference>,
}

/// A gradient that fared differently, or that only one of the audits has.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Whose gradient: "output 0 of `Silu`".
    pub gradient: String,
    /// In the first audit: declared, received, delivered and what happened.
    pub before: Option<String>,
    /// In the second.
    pub after: Option<String>,
}

impl Audit {
    /// Pairs the rows of two audits by whose gradient it is and how often that came before, and gives those that differ in
    /// anything but the numbers of nodes.
    pub fn compare(&self, other: &Self) -> Comparison {
        let theirs = numbered(other);
        let mut unpaired: HashMap<Key<'_>, &Row> = theirs.iter().copied().collect();
        let mut differences = Vec::new();
        for (key, row) in numbered(self) {
            let (before, after) = (Some(fate(row)), unpaired.remove(&key).map(fate));
            if before != after {
                differences.push(Difference { gradient: row.receiver_text(), before, after });
            }
        }
        for (_, row) in theirs.iter().filter(|(key, _)| unpaired.contains_key(key)) {
            let (gradient, after) = (row.receiver_text(), Some(fate(row)));
            differences.push(Difference { gradient, before: None, after });
        }
        Comparison { differences }
    }
}

/// Call, Function, label, output, and how many such rows came before.
type Key<'a> = (u64, &'a str, Option<&'a str>, usize, usize);

fn numbered(audit: &Audit) -> Vec<(Key<'_>, &Row)> {
    let mut seen: HashMap<_, usize> = HashMap::new();
    let mut numbered = Vec::new();
    for row in audit.rows() {
        let (function, label) = (row.receiver.function, row.receiver.label.as_deref());
        let before = seen.entry((row.call, function, label, row.output)).or_default();
        numbered.push(((row.call, function, label, row.output, *before), row));
        *before += 1;
    }
    numbered
}

/// Everything about a row that a declaration can change.
fn fate(row: &Row) -> String {
    let delivered = row.delivered().map_or_else(|| "–".to_owned(), |dtype| dtype.to_string());
    format!("{}: {} → {delivered}, {}", row.declared_text(), row.arrived, row.happened_text())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differences.is_empty() {
            return writeln!(f, "no difference");
        }
        let none = || "not there".to_owned();
        let cells = |difference: &Difference| {
            let Difference { gradient, before, after } = difference;
            [gradient.clone(), before.clone().unwrap_or_else(none), after.clone().unwrap_or_else(none)]
        };
        let rows: Vec<_> = self.differences.iter().map(cells).collect();
        table::write(f, Border::Spaces, ["gradient of", "in the first audit", "in the second"], &rows)
    }
}
