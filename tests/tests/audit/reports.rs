//! An audit as text.

use std::io;

use gradpact::audit::{Audit, Format, record};
use gradpact::autograd::label;
use gradpact::prelude::*;

use crate::{Store, leaf_in, of, send};

fn audit() -> Audit {
    let x = leaf_in(DType::F32, DType::F32, &[1.0, 2.0]);
    let seed = of(DType::F32, &[0.1, 1e-10]);
    record(|| {
        let y = label("a \"quoted\", odd | label", || Store::new("Layer", DType::F16, None).on(&x));
        send(&y, &seed).unwrap();
    })
    .1
}

fn written(format: Format) -> String {
    let mut bytes = Vec::new();
    audit().write(&mut bytes, format).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_text_shows_rows_conversions_and_round_trips() {
    let text = written(Format::Text);
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("gradient of"));
    for part in [
        "output 0 of `Layer`",
        "f16 (default)",
        "narrowed: 1 of 2 became zero, 1 rounded",
        "forward of `Layer`",
        "lossy round trip: f32 at a leaf",
    ] {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

#[test]
fn markdown_has_a_column_for_each_heading_in_every_row() {
    let text = written(Format::Markdown);
    let table: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(table.len() == 4 && table.iter().all(|line| bars(line) == bars(table[0])), "{text}");
}

#[test]
fn csv_is_read_back_with_every_field() {
    let text = written(Format::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let rows: Vec<_> = reader.records().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), 2);
    let field =
        |row: usize, name: &str| rows[row][headers.iter().position(|h| h == name).unwrap()].to_owned();
    assert_eq!(field(0, "function"), "Layer");
    assert_eq!(field(0, "label"), "a \"quoted\", odd | label");
    assert_eq!([field(0, "received"), field(0, "delivered")], ["f32", "f16"]);
    assert_eq!([field(0, "became_zero"), field(0, "rounded"), field(0, "sender")], ["1", "1", ""]);
    assert_eq!([field(1, "leaf"), field(1, "sender")], ["true", "Layer"]);
}

#[test]
fn json_lines_are_one_object_each_in_order() {
    let text = written(Format::JsonLines);
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["conversion", "gradient", "gradient"]);
    assert_eq!(lines[1]["grad_dtype"], "f16");
    assert_eq!(lines[1]["source"], "default");
    assert_eq!(lines[1]["happened"], "narrowed");
    assert_eq!(lines[2]["sender_input"], 0);
}

#[test]
fn the_summary_is_one_line_with_version_and_dtypes() {
    let summary = audit().summary();
    assert_eq!(summary.lines().count(), 1);
    let version = format!("gradpact {}", env!("CARGO_PKG_VERSION"));
    for part in
        [version.as_str(), "2 gradients", "1 narrowed", "1 values lost", "Layer.0 f16", "received f16"]
    {
        assert!(summary.contains(part), "no {part:?} in: {summary}");
    }
    assert!(Audit::default().summary().contains("no Function of the user's"));
}

/// Accepts a few bytes, then fails.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(io::Error::other("disk is full"));
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_write_that_fails_is_an_error_in_every_format() {
    for format in [Format::Text, Format::Markdown, Format::Csv, Format::JsonLines] {
        let error = audit().write(&mut Full(10), format).unwrap_err().to_string();
        assert!(error.contains("disk is full"), "{format:?}: {error}");
    }
}

#[test]
fn an_empty_audit_is_a_report_too() {
    let mut bytes = Vec::new();
    Audit::default().write(&mut bytes, Format::Text).unwrap();
    assert!(String::from_utf8(bytes).unwrap().starts_with("gradient of"));
}
