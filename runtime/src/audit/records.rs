//! Rows as flat records, for programs: CSV and JSON lines.

use std::io;

use serde::Serialize;

use super::Audit;
use super::row::{Conversion, Event, Row};
use crate::dtype::Census;

/// One gradient.
#[derive(Serialize)]
struct Gradient<'a> {
    call: u64,
    function: &'a str,
    node: u64,
    label: Option<&'a str>,
    leaf: bool,
    output: usize,
    shape: String,
    storage: &'static str,
    grad_dtype: String,
    source: String,
    policy: String,
    received: &'static str,
    delivered: Option<&'static str>,
    happened: String,
    sender: Option<&'a str>,
    sender_node: Option<u64>,
    sender_input: Option<usize>,
    values: Option<u64>,
    nan: Option<u64>,
    infinite: Option<u64>,
    zero: Option<u64>,
    became_infinite: Option<u64>,
    became_zero: Option<u64>,
    became_subnormal: Option<u64>,
    rounded: Option<u64>,
}

impl<'a> Gradient<'a> {
    fn of(row: &'a Row) -> Self {
        let count = |field: fn(Census) -> u64| row.census().map(field);
        let sender = row.sender.as_ref();
        Self {
            call: row.call,
            function: row.receiver.function,
            node: row.receiver.sequence_nr,
            label: row.receiver.label.as_deref(),
            leaf: row.receiver.is_leaf,
            output: row.output,
            shape: row.shape.to_string(),
            storage: row.storage.as_str(),
            grad_dtype: row.contract.grad_dtype.to_string(),
            source: row.contract.source.to_string(),
            policy: format!("{:?}", row.contract.policy).to_lowercase(),
            received: row.arrived.as_str(),
            delivered: row.delivered().map(crate::DType::as_str),
            happened: match row.happened() {
                super::Happened::Nothing => "nothing".to_owned(),
                happened => happened.to_string(),
            },
            sender: sender.map(|(node, _)| node.function),
            sender_node: sender.map(|(node, _)| node.sequence_nr),
            sender_input: sender.map(|(_, input)| *input),
            values: count(|census| census.values),
            nan: count(|census| census.nan),
            infinite: count(|census| census.infinite),
            zero: count(|census| census.zero),
            became_infinite: count(|census| census.overflowed),
            became_zero: count(|census| census.flushed),
            became_subnormal: count(|census| census.subnormal),
            rounded: count(|census| census.rounded),
        }
    }
}

/// One conversion.
#[derive(Serialize)]
struct Cast {
    stage: String,
    operation: Option<String>,
    is_result: bool,
    from: &'static str,
    to: &'static str,
    values: Option<u64>,
    became_infinite: Option<u64>,
    became_zero: Option<u64>,
    became_subnormal: Option<u64>,
    rounded: Option<u64>,
}

impl Cast {
    fn of(conversion: &Conversion) -> Self {
        let count = |field: fn(Census) -> u64| conversion.census.map(field);
        Self {
            stage: conversion.stage.to_string(),
            operation: conversion.operation.clone(),
            is_result: conversion.is_result,
            from: conversion.from.as_str(),
            to: conversion.to.as_str(),
            values: count(|census| census.values),
            became_infinite: count(|census| census.overflowed),
            became_zero: count(|census| census.flushed),
            became_subnormal: count(|census| census.subnormal),
            rounded: count(|census| census.rounded),
        }
    }
}

/// A line of JSON: its kind, and what is known.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line<'a> {
    Gradient(Box<Gradient<'a>>),
    Conversion(Box<Cast>),
}

pub(super) fn write_json_lines(audit: &Audit, to: &mut impl io::Write) -> io::Result<()> {
    for event in &audit.events {
        let line = match event {
            Event::Admission(row) => Line::Gradient(Box::new(Gradient::of(row))),
            Event::Conversion(conversion) => Line::Conversion(Box::new(Cast::of(conversion))),
        };
        serde_json::to_writer(&mut *to, &line)?;
        to.write_all(b"\n")?;
    }
    Ok(())
}

pub(super) fn write_csv(audit: &Audit, to: &mut impl io::Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    for row in audit.rows() {
        writer.serialize(Gradient::of(row)).map_err(io::Error::other)?;
    }
    writer.flush()
}
