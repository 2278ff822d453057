//! An audit as text: a table, Markdown, CSV, JSON lines, and one line for a training note.

use core::fmt;
use std::io;

use super::Audit;
use super::row::{Conversion, Happened, Row};
use super::table::{self, Border};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tables with columns of spaces, for a terminal.
    Text,
    /// Markdown tables.
    Markdown,
    /// One line for each gradient, with headings.
    #[cfg(feature = "report")]
    Csv,
    /// One JSON object in a line for each gradient and each conversion.
    #[cfg(feature = "report")]
    JsonLines,
}

const HEADINGS: [&str; 7] =
    ["gradient of", "stored", "gradient dtype", "received", "delivered", "what happened", "sent by"];

/// A table of rows.
pub(super) fn write_rows<'a>(
    f: &mut dyn fmt::Write,
    border: Border,
    rows: impl Iterator<Item = &'a Row>,
) -> fmt::Result {
    let cells = |row: &Row| {
        [
            row.receiver_text(),
            format!("{} {}", row.storage, row.shape),
            row.declared_text(),
            row.arrived.to_string(),
            row.delivered().map_or_else(|| "–".to_owned(), |dtype| dtype.to_string()),
            row.happened_text(),
            row.sender_text(),
        ]
    };
    table::write(f, border, HEADINGS, &rows.map(cells).collect::<Vec<_>>())
}

pub(super) fn write_conversions<'a>(
    f: &mut dyn fmt::Write,
    border: Border,
    conversions: impl Iterator<Item = &'a Conversion>,
) -> fmt::Result {
    let cells = |conversion: &Conversion| {
        [
            conversion.place_text(),
            conversion.from.to_string(),
            conversion.to.to_string(),
            conversion.happened_text(),
        ]
    };
    let headings = ["converted in", "from", "to", "what happened"];
    table::write(f, border, headings, &conversions.map(cells).collect::<Vec<_>>())
}

impl Audit {
    /// Writes the report.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, to: &mut impl io::Write, format: Format) -> io::Result<()> {
        match format {
            Format::Text => to.write_all(self.to_text(Border::Spaces).as_bytes()),
            Format::Markdown => to.write_all(self.to_text(Border::Markdown).as_bytes()),
            #[cfg(feature = "report")]
            Format::Csv => super::records::write_csv(self, to),
            #[cfg(feature = "report")]
            Format::JsonLines => super::records::write_json_lines(self, to),
        }
    }

    /// The report as Markdown.
    pub fn to_markdown(&self) -> String {
        self.to_text(Border::Markdown)
    }

    fn to_text(&self, border: Border) -> String {
        let mut text = String::new();
        // Writing to a `String` does not fail.
        let _ = self.write_to(&mut text, border);
        text
    }

    fn write_to(&self, f: &mut dyn fmt::Write, border: Border) -> fmt::Result {
        write_rows(f, border, self.rows())?;
        if self.conversions().next().is_some() {
            f.write_str("\n")?;
            write_conversions(f, border, self.conversions())?;
        }
        let trips = self.lossy_round_trips();
        if !trips.is_empty() {
            f.write_str("\n")?;
        }
        let bullet = if matches!(border, Border::Markdown) { "* " } else { "" };
        trips.iter().try_for_each(|trip| writeln!(f, "{bullet}{trip}"))
    }

    /// One line for a training note: version, how many gradients, and for each Function of the user's the output dtype, the
    /// declared and the received dtype.
    pub fn summary(&self) -> String {
        let (mut narrowed, mut lost) = (0_usize, 0_u64);
        for row in self.rows() {
            narrowed += usize::from(row.happened() == Happened::Narrowed);
            lost += row.census().map_or(0, |census| census.losses());
        }
        let in_backward = self.conversions().filter(|conversion| conversion.loses_gradient());
        lost += in_backward.filter_map(|c| c.census).map(|census| census.losses()).sum::<u64>();
        let mut functions: Vec<String> = Vec::new();
        for row in self.rows().filter(|row| row.receiver.is_user_code && !row.receiver.is_leaf) {
            let delivered = row.delivered().map_or_else(|| "refused".to_owned(), |dtype| dtype.to_string());
            let (name, output) = (row.receiver.function, row.output);
            let declared = row.declared_text();
            let text = format!("{name}.{output} {}, gradient {declared}, received {delivered}", row.storage);
            if !functions.contains(&text) {
                functions.push(text);
            }
        }
        let functions =
            if functions.is_empty() { "no Function of the user's".to_owned() } else { functions.join("; ") };
        format!(
            "gradpact {}: {} gradients, {narrowed} narrowed, {lost} values lost; {functions}",
            env!("CARGO_PKG_VERSION"),
            self.rows().count(),
        )
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f, Border::Spaces)
    }
}
