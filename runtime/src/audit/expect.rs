//! What a test expects of gradients' dtypes.

use super::row::{Conversion, Happened, Row};
use super::{Audit, report, table};
use crate::dtype::DType;
use crate::error::{Error, Result};

impl Audit {
    /// Checks that no gradient was converted to a dtype that cannot hold all it could be, at an edge or inside a backward, or
    /// refused; and that no value of one overflowed or became zero when a result or a sum was stored.
    ///
    /// # Errors
    /// [`Error::Audit`] with the rows.
    pub fn assert_lossless(&self) -> Result<()> {
        let narrowed = |row: &&Row| matches!(row.happened(), Happened::Narrowed | Happened::Refused);
        let rows: Vec<&Row> = self.rows().filter(narrowed).collect();
        let inside: Vec<&Conversion> = self.conversions().filter(|c| c.loses_gradient()).collect();
        let trips = self.lossy_round_trips();
        if rows.is_empty() && inside.is_empty() && trips.is_empty() {
            return Ok(());
        }
        let (at_edges, elsewhere, all) = (rows.len(), inside.len(), self.rows().count());
        let mut report =
            format!("{at_edges} of {all} gradients lost precision at an edge, {elsewhere} elsewhere\n");
        append(&mut report, &rows);
        if !inside.is_empty() {
            // Writing to a `String` does not fail.
            let _ = report::write_conversions(&mut report, table::Border::Spaces, inside.into_iter());
        }
        trips.iter().for_each(|trip| report.push_str(&format!("{trip}\n")));
        Err(Error::Audit(report))
    }

    /// Checks that output `output` of Function `function` received gradients, and all of them in `dtype`.
    ///
    /// # Errors
    /// [`Error::Audit`] with the rows, or saying that there is none.
    pub fn assert_received(&self, function: &str, output: usize, dtype: DType) -> Result<()> {
        let rows: Vec<&Row> = self.rows_of(function, output).collect();
        if rows.is_empty() {
            let known = self.functions().join(", ");
            let report =
                format!("no gradient came to output {output} of `{function}`; they came to: {known}\n");
            return Err(Error::Audit(report));
        }
        let others: Vec<&Row> = rows.into_iter().filter(|row| row.delivered() != Some(dtype)).collect();
        if others.is_empty() {
            return Ok(());
        }
        let mut report = format!("output {output} of `{function}` must receive {dtype}\n");
        append(&mut report, &others);
        Err(Error::Audit(report))
    }

    /// The Functions that gradients came to, each once.
    fn functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self.rows().map(|row| format!("`{}`", row.receiver.function)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Appends a table of rows.
fn append(report: &mut String, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    // Writing to a `String` does not fail.
    let _ = report::write_rows(report, table::Border::Spaces, rows.iter().copied());
}
