//! The contract at work: one small Function stored in f16, once for each way to declare its gradient.
//!
//! `cargo run --example contract_report [-- --format text|markdown|csv|json]`
//!
//! A scalar loss is sent backward through each, under an audit. For each one line tells the dtype of the output, what was
//! declared, the dtype in which backward received its gradient, what the conversion did to a gradient of 0.1 and of 1e-10,
//! and what PyTorch 2.14.1 was measured to do. A second table tells what a Function saved for its backward, and what became of
//! that. Then the audits with and without a declaration are compared. At the end it asserts that what was declared is what
//! arrived.

#![allow(clippy::print_stdout, reason = "a program that prints a report")]

mod saved;

use clap::{Parser, ValueEnum};
use gradpact::audit::{self, Audit};
use gradpact::prelude::*;
use serde::Serialize;

/// The gradients that the loss sends: the one f16 rounds, the other it flushes to zero.
const SENT: [f32; 2] = [0.1, 1e-10];

/// Writes a Function `Store` that stores its input in f16, in a module of its own.
macro_rules! stored_in_f16 {
    ($module:ident, received as $gradient:ty, #[$contract:meta]) => {
        mod $module {
            use super::*;

            #[$contract]
            pub(super) struct Store;

            impl Op for Store {
                type Inputs = Tensor<f32>;

                fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
                    x.cast()
                }

                fn backward(&self, _: &Context, grad: $gradient) -> Result<Value<f32>> {
                    DynTensor::from(grad).cast(DType::F32)?.typed()
                }
            }
        }
    };
}

stored_in_f16!(undeclared, received as Value<f16>, #[autograd_function(out = f16)]);
stored_in_f16!(in_f16, received as Value<f16>, #[autograd_function(out = f16, grad = f16)]);
stored_in_f16!(in_f32, received as Value<f32>, #[autograd_function(out = f16, grad = f32)]);
stored_in_f16!(as_it_comes, received as DynTensor, #[autograd_function(out = f16, grad = any)]);
stored_in_f16!(in_bf16, received as Value<bf16>, #[autograd_function(out = f16, grad = bf16)]);
stored_in_f16!(in_f64, received as Value<f64>, #[autograd_function(out = f16, grad = f64)]);
stored_in_f16!(in_f8e4m3, received as Value<f8e4m3>, #[autograd_function(out = f16, grad = f8e4m3)]);
stored_in_f16!(in_f8e5m2, received as Value<f8e5m2>, #[autograd_function(out = f16, grad = f8e5m2)]);

/// One line of the report.
#[derive(Debug, Serialize)]
struct Line {
    output: String,
    declared: &'static str,
    received: String,
    conversion: String,
    value_of_0_1: f64,
    value_of_1e_10: f64,
    /// Measured: the same loss, `y.float()` in between.
    pytorch_same_loss: &'static str,
    /// Measured: a gradient that enters the Function directly.
    pytorch_direct: &'static str,
}

/// Sends a scalar loss back through what `apply` makes, whose gradient is then [`SENT`], and reports.
fn report<G: gradpact::typed::GradType>(
    declared: &'static str,
    pytorch: (&'static str, &'static str),
    apply: impl FnOnce(&Tensor<f32>) -> Result<Tensor<f16, G>>,
) -> Result<(Line, Audit)> {
    let x = Tensor::<f32>::from_vec(vec![1.0, 2.0], [2])?.requiring_grad()?;
    let y = apply(&x)?.into_dyn();
    y.retain_grad()?;
    let loss = y.cast(DType::F32)?.mul(&DynTensor::from_vec(SENT.to_vec(), [2])?)?.sum()?;
    let (result, audit) = audit::record(|| loss.backward());
    result?;

    let nothing = || Error::custom("no gradient arrived");
    let row = audit.rows_of("Store", 0).next().ok_or_else(nothing)?;
    let values = y.grad().ok_or_else(nothing)?.to_f64_vec()?;
    let received = row.delivered().ok_or_else(nothing)?;
    let line = Line {
        output: row.storage.to_string(),
        declared,
        received: received.to_string(),
        conversion: match (row.arrived == received, row.census()) {
            (false, Some(census)) => format!("{} → {received}: {census}", row.arrived),
            _ => "none".to_owned(),
        },
        value_of_0_1: values[0],
        value_of_1e_10: values[1],
        pytorch_same_loss: pytorch.0,
        pytorch_direct: pytorch.1,
    };
    Ok((line, audit))
}

/// Every way to declare it, with what PyTorch 2.14.1 (CPU) was measured to do: for a gradient of 1e-10 from
/// `y.float().sum() * 1e-10`, and for 0.1 and 1e-10 from `y.backward(gradient=g)` with g in f32.
fn all() -> Result<Vec<(Line, Audit)>> {
    Ok(vec![
        report("–", ("f16 0", "f16 0.0999756, 0"), |x| undeclared::Store.apply(x))?,
        report("f16", ("f16 0", "f16 0.0999756, 0"), |x| in_f16::Store.apply(x))?,
        report("f32", ("f32 0", "f32 0.1, 1e-10"), |x| in_f32::Store.apply(x))?,
        report("any", ("f16 0", "f32 0.1, 1e-10"), |x| as_it_comes::Store.apply(x))?,
        report("bf16", ("bf16 0", "bf16 0.100098, 1.00044e-10"), |x| in_bf16::Store.apply(x))?,
        report("f64", ("f64 0", "f64 0.1, 1e-10"), |x| in_f64::Store.apply(x))?,
        report("f8e4m3", ("f8e4m3 0", "f8e4m3 0.101562, 0"), |x| in_f8e4m3::Store.apply(x))?,
        report("f8e5m2", ("f8e5m2 0", "f8e5m2 0.09375, 0"), |x| in_f8e5m2::Store.apply(x))?,
    ])
}

const HEADINGS: [&str; 8] = [
    "output",
    "declared",
    "received",
    "conversion",
    "0.1 arrives as",
    "1e-10 arrives as",
    "PyTorch, same loss (1e-10)",
    "PyTorch, direct (0.1, 1e-10)",
];

impl Line {
    fn cells(&self) -> Vec<String> {
        vec![
            self.output.clone(),
            self.declared.to_owned(),
            self.received.clone(),
            self.conversion.clone(),
            short(self.value_of_0_1),
            short(self.value_of_1e_10),
            self.pytorch_same_loss.to_owned(),
            self.pytorch_direct.to_owned(),
        ]
    }
}

/// Six significant digits, as short as that goes.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = format!("{value:.5e}");
    let rounded: f64 = digits.parse().unwrap_or(value);
    if rounded.abs() < 1e-4 { format!("{rounded:e}") } else { rounded.to_string() }
}

fn print_table(headings: &[&str], rows: &[Vec<String>], [left, between, right]: [&str; 3]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    };
    let print = |cells: &[String]| {
        let padded: Vec<String> =
            cells.iter().enumerate().map(|(i, cell)| format!("{cell:<0$}", width(i))).collect();
        println!("{}", format!("{left}{}{right}", padded.join(between)).trim_end());
    };
    print(&headings.iter().map(|&heading| heading.to_owned()).collect::<Vec<_>>());
    let dashes: Vec<String> = (0..headings.len()).map(|column| "-".repeat(width(column))).collect();
    print(&dashes);
    rows.iter().for_each(|row| print(row));
}

/// Both tables, and the summary.
fn print_text(report: &Report, borders: [&str; 3]) {
    print_table(&HEADINGS, &report.gradients.iter().map(Line::cells).collect::<Vec<_>>(), borders);
    println!(
        "\ndeclared –: no `grad` key. PyTorch's columns: dtype and value received, as measured on 2.14.1.\n"
    );
    print_table(&saved::HEADINGS, &report.saved.iter().map(saved::Line::cells).collect::<Vec<_>>(), borders);
    let [without, with] = &report.compared;
    println!("\nWithout `grad = f32`, and with it:\n{}", without.compare(with));
    println!("{}", summary(&report.gradients));
}

/// One line to paste into a training note.
fn summary(lines: &[Line]) -> String {
    let kept: Vec<String> = lines.iter().map(|line| format!("{}→{}", line.declared, line.received)).collect();
    format!(
        "gradpact {}: output f16, gradient declared→received: {}; 1e-10 kept with f32, flushed to {} without a declaration",
        env!("CARGO_PKG_VERSION"),
        kept.join(", "),
        short(lines[0].value_of_1e_10),
    )
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Csv,
    Json,
}

/// Shows in which dtype backward receives its gradient, for every way to declare it.
#[derive(Debug, Parser)]
struct Arguments {
    /// How the report is written; `csv` has the first table only.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Both tables.
#[derive(Debug, Serialize)]
struct Report {
    gradients: Vec<Line>,
    saved: Vec<saved::Line>,
    /// The audits without a declaration and with `grad = f32`.
    #[serde(skip)]
    compared: [Audit; 2],
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let (gradients, audits): (Vec<_>, Vec<_>) = all()?.into_iter().unzip();
    let compared = [audits[0].clone(), audits[2].clone()];
    let report = Report { gradients, saved: saved::all()?, compared };
    match arguments.format {
        Format::Text => print_text(&report, ["", "  ", ""]),
        Format::Markdown => print_text(&report, ["| ", " | ", " |"]),
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(std::io::stdout());
            report.gradients.iter().try_for_each(|line| writer.serialize(line))?;
            writer.flush()?;
        }
        Format::Json => println!("{}", serde_json::to_string_pretty(&report)?),
    }
    check(&report.gradients);
    Ok(())
}

/// What the report shows is what was declared.
fn check(lines: &[Line]) {
    for line in lines {
        let expected = match line.declared {
            "–" => "f16",
            // The loss computes in f32, so that is how the gradient comes.
            "any" => "f32",
            declared => declared,
        };
        assert_eq!(line.received, expected, "declared {}", line.declared);
    }
    let value =
        |declared| lines.iter().find(|line| line.declared == declared).map(|line| line.value_of_1e_10);
    assert_eq!(value("f32"), Some(f64::from(1e-10_f32)), "a declared f32 gradient is not flushed");
    assert_eq!(value("–"), Some(0.0), "an undeclared one is, as f16 has nothing that small");
}
