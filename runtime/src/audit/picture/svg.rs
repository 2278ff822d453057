//! The picture as a self-contained SVG file.

use core::fmt::Write;

use dagre::graph::{Graph, GraphOptions};
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, Point};

use super::{ALARM, DType, Edge, Happened, Kind, Node, Picture, colour};

/// Width of a character, height of a line, and space around text, in pixels.
const CHAR: f64 = 6.7;
const LINE: f64 = 15.0;
const PADDING: f64 = 9.0;

impl Picture {
    /// A drawing that needs no other file, and no program but a browser.
    pub fn to_svg(&self) -> String {
        let graph = self.laid_out();
        let place = |number: usize| graph.node(&number.to_string());
        let legend = 40.0;
        let (mut width, mut height) = (420.0_f64, 0.0_f64);
        for node in (0..self.nodes.len()).filter_map(place) {
            width = width.max(node.x.unwrap_or(0.0) + node.width / 2.0 + 20.0);
            height = height.max(node.y.unwrap_or(0.0) + node.height / 2.0 + 20.0);
        }
        let labels = self
            .edges
            .iter()
            .enumerate()
            .filter_map(|(number, edge)| Some((drawn(&graph, number, edge)?, edge)));
        for (line, edge) in labels {
            width = width.max(line.x.unwrap_or(0.0) + text_width(&edge.text) / 2.0 + 20.0);
        }
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{:.0}\" \
             font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            height + legend
        );
        self.write_legend(&mut svg);
        // Writing to a `String` does not fail.
        let _ = writeln!(svg, "<g transform=\"translate(0 {legend})\">");
        for (number, edge) in self.edges.iter().enumerate() {
            if let Some(line) = drawn(&graph, number, edge) {
                write_edge(&mut svg, edge, line);
            }
        }
        for (number, node) in self.nodes.iter().enumerate() {
            if let Some(at) = place(number) {
                write_node(&mut svg, node, at);
            }
        }
        svg.push_str("</g>\n</svg>\n");
        svg
    }

    fn laid_out(&self) -> Graph<NodeLabel, EdgeLabel> {
        let mut graph =
            Graph::with_options(GraphOptions { directed: true, multigraph: true, compound: false });
        for (number, node) in self.nodes.iter().enumerate() {
            let lines = node.lines.iter().chain([&node.title]);
            let widest = lines.map(|line| text_width(line)).fold(30.0, f64::max);
            let height = LINE * (node.lines.len() + 1) as f64 + PADDING;
            let label = NodeLabel { width: widest + 2.0 * PADDING, height, ..NodeLabel::default() };
            graph.set_node(number.to_string(), Some(label));
        }
        for (number, edge) in self.edges.iter().enumerate() {
            let (width, height) =
                if edge.text.is_empty() { (0.0, 0.0) } else { (text_width(&edge.text) + 8.0, LINE) };
            let label = EdgeLabel {
                width,
                height,
                labelpos: dagre::layout::types::LabelPos::Center,
                ..EdgeLabel::default()
            };
            let (from, to) = (edge.from.to_string(), edge.to.to_string());
            graph.set_edge(from, to, Some(label), Some(&number.to_string()));
        }
        let options = LayoutOptions {
            nodesep: 30.0,
            ranksep: 36.0,
            marginx: 20.0,
            marginy: 12.0,
            ..LayoutOptions::default()
        };
        dagre::layout(&mut graph, Some(options));
        graph
    }

    /// The dtypes that occur, in their colours.
    fn write_legend(&self, svg: &mut String) {
        let mut x = 20.0;
        let _ = write!(svg, "<text x=\"{x}\" y=\"24\" fill=\"#444\">gradient dtype:</text>");
        x += text_width("gradient dtype:") + 14.0;
        for dtype in DType::FLOATS.into_iter().rev() {
            if self.edges.iter().all(|edge| edge.dtype != Some(dtype)) {
                continue;
            }
            let colour = colour(Some(dtype));
            let _ = write!(svg, "<path d=\"M{x:.0} 20h22\" stroke=\"{colour}\" stroke-width=\"2\"/>");
            x += 27.0;
            let _ = write!(svg, "<text x=\"{x:.0}\" y=\"24\" fill=\"{colour}\">{dtype}</text>");
            x += text_width(dtype.as_str()) + 16.0;
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.0} 20h22\" stroke=\"{ALARM}\" stroke-width=\"8\" stroke-opacity=\"0.3\"/>\
             <text x=\"{:.0}\" y=\"24\" fill=\"{ALARM}\">narrowed</text>",
            x + 27.0
        );
    }
}

/// Where an edge runs.
fn drawn<'g>(graph: &'g Graph<NodeLabel, EdgeLabel>, number: usize, edge: &Edge) -> Option<&'g EdgeLabel> {
    graph.edge(&edge.from.to_string(), &edge.to.to_string(), Some(&number.to_string()))
}

fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn write_node(svg: &mut String, node: &Node, at: &NodeLabel) {
    let (x, y) = (at.x.unwrap_or(0.0), at.y.unwrap_or(0.0));
    let (left, top) = (x - at.width / 2.0, y - at.height / 2.0);
    let (fill, radius) = match node.kind {
        Kind::Seed => ("#ffffff", 12.0),
        Kind::Operation => ("#f4f4f4", 3.0),
        Kind::Function => ("#e8f0fe", 3.0),
        Kind::Leaf => ("#eef7ea", 12.0),
    };
    let (stroke, thick) = match (node.lossy, node.kind) {
        (true, _) => (ALARM, 2.0),
        (_, Kind::Function) => ("#335", 1.6),
        _ => ("#888", 1.0),
    };
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{radius}\" fill=\"{fill}\" \
         stroke=\"{stroke}\" stroke-width=\"{thick}\"/>",
        at.width, at.height
    );
    for (number, line) in [&node.title].into_iter().chain(&node.lines).enumerate() {
        let baseline = top + PADDING / 2.0 + LINE * (number as f64 + 0.75);
        let weight = if number == 0 { " font-weight=\"bold\"" } else { "" };
        let fill = if line.starts_with("inside: ") { ALARM } else { "#222" };
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{baseline:.1}\" text-anchor=\"middle\" fill=\"{fill}\"{weight}>{}</text>",
            escaped(line)
        );
    }
}

fn write_edge(svg: &mut String, edge: &Edge, line: &EdgeLabel) {
    let colour = colour(edge.dtype);
    let narrowed = matches!(edge.happened, Happened::Narrowed | Happened::Refused);
    let style =
        if narrowed { " stroke-width=\"2.5\" stroke-dasharray=\"5 3\"" } else { " stroke-width=\"1.6\"" };
    let [.., before, end] = &line.points[..] else { return };
    let path: Vec<String> =
        line.points.iter().map(|point| format!("{:.1} {:.1}", point.x, point.y)).collect();
    let path = path.join("L");
    if narrowed {
        let _ = writeln!(
            svg,
            "<path d=\"M{path}\" fill=\"none\" stroke=\"{ALARM}\" stroke-width=\"8\" stroke-opacity=\"0.3\"/>"
        );
    }
    let head = arrow_head(before, end, colour);
    let _ = writeln!(svg, "<path d=\"M{path}\" fill=\"none\" stroke=\"{colour}\"{style}/>{head}");
    if edge.text.is_empty() {
        return;
    }
    let (x, y) = (line.x.unwrap_or(end.x), line.y.unwrap_or(end.y));
    let width = text_width(&edge.text);
    let fill = if narrowed { ALARM } else { colour };
    let _ = writeln!(
        svg,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{LINE}\" fill=\"white\"/>\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{fill}\">{}</text>",
        x - width / 2.0 - 2.0,
        y - LINE / 2.0,
        width + 4.0,
        y + 4.0,
        escaped(&edge.text)
    );
}

/// A triangle at the end of a line.
fn arrow_head(before: &Point, end: &Point, colour: &str) -> String {
    let (dx, dy) = (end.x - before.x, end.y - before.y);
    let length = dx.hypot(dy).max(1e-6);
    let (dx, dy) = (dx / length, dy / length);
    let corner = |side: f64| (end.x - 8.0 * dx - side * 4.0 * dy, end.y - 8.0 * dy + side * 4.0 * dx);
    let (left, right) = (corner(1.0), corner(-1.0));
    format!(
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}z\" fill=\"{colour}\"/>",
        end.x, end.y, left.0, left.1, right.0, right.1
    )
}
