//! One table of everything that was measured, in Markdown.

use crate::measure::{Column, Measured, Quartiles, Series};

/// The head of the table, and what its cells mean.
pub const HEAD: &str = "\
A cell is the median of the rounds. Behind it, in the columns of the others: gradpact's number divided by theirs, formed in each
round, as median and [quartiles]. Below 1 gradpact needs less.

| what | unit | gradpact | compared with | candle | burn | PyTorch |
| --- | --- | ---: | ---: | ---: | ---: | ---: |";

/// The rows of one group: one for each metric, and one more for each baseline after the first.
pub fn rows(measured: &Measured) -> Vec<String> {
    let mut rows = Vec::new();
    for (metric, name) in measured.metrics.iter().enumerate() {
        let what = if name.is_empty() { measured.what.clone() } else { format!("{}: {name}", measured.what) };
        let Some(ours) = measured.results.first() else { continue };
        let ours = ours.metric(metric);
        let cell = |column: &Column| cell_of(measured, column, metric, ours.as_deref().ok());
        let mut baselines = measured.results.iter().filter(|s| matches!(s.column, Column::Baseline(_)));
        let first = baselines.next().map_or_else(String::new, |series| cell(&series.column));
        let peers = [Column::Candle, Column::Burn, Column::PyTorch].map(|column| cell(&column)).join(" | ");
        let median = match &ours {
            Ok(samples) => Quartiles::of(samples).map_or_else(String::new, |q| number(q.median())),
            Err(reason) => reason.clone(),
        };
        rows.push(format!("| {what} | {} | {median} | {first} | {peers} |", measured.unit));
        for baseline in baselines {
            rows.push(format!(
                "| {what} | {} | {median} | {} | | | |",
                measured.unit,
                cell(&baseline.column)
            ));
        }
    }
    rows
}

fn cell_of(measured: &Measured, column: &Column, metric: usize, ours: Option<&[f64]>) -> String {
    let Some(series) = measured.results.iter().find(|series| series.column == *column) else {
        return String::new();
    };
    let text = compared(series, metric, ours);
    match column {
        Column::Baseline(name) => format!("{name} {text}"),
        _ => text,
    }
}

fn compared(series: &Series, metric: usize, ours: Option<&[f64]>) -> String {
    let theirs = match series.metric(metric) {
        Ok(theirs) => theirs,
        Err(reason) => return reason,
    };
    let median = Quartiles::of(&theirs).map_or_else(String::new, |q| number(q.median()));
    let ratios = ours.and_then(|ours| Quartiles::of_ratios(ours, &theirs));
    let Some(Quartiles([low, middle, high])) = ratios else { return median };
    format!("{median} · ×{} [{}–{}]", ratio(middle), ratio(low), ratio(high))
}

/// Three digits, or all before the point.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn ratio(value: f64) -> String {
    if value < 0.1 { format!("{value:.3}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Contender, Group};

    #[test]
    fn a_row_shows_medians_and_ratios_of_each_column() {
        let contenders = vec![
            Contender::new(Column::Ours, || Ok(vec![20.0])),
            Contender::new(Column::Baseline("tape".to_owned()), || Ok(vec![10.0])),
            Contender::new(Column::Baseline("other".to_owned()), || Ok(vec![40.0])),
            Contender::new(Column::Burn, || Ok(vec![400.0])),
            Contender::absent(Column::PyTorch, "not measured"),
        ];
        let rows = rows(&Group::new("a chain", "ns", contenders).metrics(&["forward"]).measure(2));
        let expected = [
            "| a chain: forward | ns | 20.0 | tape 10.0 · ×2.00 [2.00–2.00] |  | 400 · ×0.050 [0.050–0.050] | not measured |",
            "| a chain: forward | ns | 20.0 | other 40.0 · ×0.50 [0.50–0.50] | | | |",
        ];
        assert_eq!(rows, expected);
    }
}
