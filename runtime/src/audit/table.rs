//! Text in columns.

use core::fmt::{self, Write};

/// How cells are set apart.
#[derive(Clone, Copy)]
pub(super) enum Border {
    Spaces,
    Markdown,
}

/// Writes rows under headings, columns as wide as their widest cell.
pub(super) fn write<const N: usize>(
    f: &mut dyn Write,
    border: Border,
    headings: [&str; N],
    rows: &[[String; N]],
) -> fmt::Result {
    let escaped = |row: &[String; N]| match border {
        Border::Spaces => row.clone(),
        Border::Markdown => row.each_ref().map(|cell| cell.replace('|', "\\|")),
    };
    let rows: Vec<[String; N]> = rows.iter().map(escaped).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = core::array::from_fn(width);
    let [left, between, right] = match border {
        Border::Spaces => ["", "  ", ""],
        Border::Markdown => ["| ", " | ", " |"],
    };
    let mut line = |cells: [&str; N]| {
        let padded: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(f, "{}", format!("{left}{}{right}", padded.join(between)).trim_end())
    };
    line(headings)?;
    let dashes = widths.map(|width| "-".repeat(width));
    line(dashes.each_ref().map(String::as_str))?;
    rows.iter().try_for_each(|row| line(row.each_ref().map(String::as_str)))
}
