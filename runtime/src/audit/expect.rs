//! What a test expects of gradients' dtypes.

use super::row::{Happened, Row};
use super::{Audit, table};
use crate::dtype::DType;
use crate::error::{Error, Result};

impl Audit {
    /// Checks that no gradient was converted to a dtype that cannot hold all it could be, or refused, or passed through such
    /// a dtype on its way.
    ///
    /// # Errors
    /// [`Error::Audit`] with the rows.
    pub fn assert_lossless(&self) -> Result<()> {
        let narrowed = |row: &&Row| matches!(row.happened(), Happened::Narrowed | Happened::Refused);
        let rows: Vec<&Row> = self.rows().filter(narrowed).collect();
        let trips = self.lossy_round_trips();
        if rows.is_empty() && trips.is_empty() {
            return Ok(());
        }
        let mut report = format!("{} of {} gradients lost precision\n", rows.len(), self.rows().count());
        append(&mut report, &rows);
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
    let _ = super::report::write_rows(report, table::Border::Spaces, rows.iter().copied());
}
