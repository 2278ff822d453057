//! The results as a chart: accuracy on the one side, the share of flushed gradient values on the other.

use std::path::Path;

use plotters::prelude::*;

use super::Run;

const COLORS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(86, 180, 233), RGBColor(213, 94, 0), RGBColor(230, 159, 0)];

type Drawing<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Writes the chart of `runs` to `path`.
pub(crate) fn write(runs: &[Run], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (1100, 460)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(550);
    let accuracy = |run: &Run| run.epochs.iter().map(|epoch| epoch.accuracy * 100.0).collect();
    let flushed = |run: &Run| run.epochs.iter().map(|epoch| epoch.zeros * 100.0).collect();
    let (low, high) = (SeriesLabelPosition::LowerRight, SeriesLabelPosition::UpperLeft);
    panel(&left, "Accuracy on the test images, %", runs, accuracy, low)?;
    panel(&right, "Gradient values that arrived as zero, %", runs, flushed, high)?;
    root.present()?;
    Ok(())
}

fn panel(
    area: &Drawing<'_>,
    title: &str,
    runs: &[Run],
    series: impl Fn(&Run) -> Vec<f64>,
    legend: SeriesLabelPosition,
) -> Result<(), Box<dyn std::error::Error>> {
    let lines: Vec<Vec<f64>> = runs.iter().map(series).collect();
    let last = lines.iter().map(Vec::len).max().unwrap_or(1).max(2) - 1;
    let top = lines.iter().flatten().fold(1.0_f64, |top, &value| top.max(value)) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(44)
        .build_cartesian_2d(0..last, 0.0..top)?;
    chart.configure_mesh().light_line_style(WHITE).x_desc("epoch").draw()?;
    for ((run, values), color) in runs.iter().zip(lines).zip(COLORS) {
        // The runs with loss scaling are drawn over the others where they agree, so they are thinner.
        let width = if run.loss_scale == 1.0 { 4 } else { 2 };
        let line = LineSeries::new(values.into_iter().enumerate(), color.stroke_width(width));
        chart
            .draw_series(line)?
            .label(run.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], color.stroke_width(width)));
    }
    chart
        .configure_series_labels()
        .position(legend)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .legend_area_size(30)
        .draw()?;
    Ok(())
}
