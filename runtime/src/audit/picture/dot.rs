//! The picture in the language of Graphviz.

use core::fmt::Write;

use super::{ALARM, Happened, Kind, Picture, colour};

impl Picture {
    /// The graph in the DOT language.
    ///
    /// # Examples
    /// ```
    /// use gradpact::prelude::*;
    ///
    /// let x = Tensor::<f32>::scalar(1.0).requiring_grad()?;
    /// let (result, audit) = gradpact::audit::record(|| x.exp()?.backward());
    /// result?;
    /// assert!(audit.picture().to_dot().starts_with("digraph gradients {"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph gradients {\n  node [fontname=\"monospace\" fontsize=11];\n");
        dot.push_str("  edge [fontname=\"monospace\" fontsize=10];\n");
        for (number, node) in self.nodes.iter().enumerate() {
            let shape = match node.kind {
                Kind::Seed => "plaintext",
                Kind::Leaf => "folder",
                Kind::Function => "box style=bold",
                Kind::Operation => "box",
            };
            let text = [&node.title].into_iter().chain(&node.lines).map(|line| escaped(line));
            let text = text.collect::<Vec<_>>().join("\\n");
            let alarm = if node.lossy { format!(" color=\"{ALARM}\"") } else { String::new() };
            // Writing to a `String` does not fail.
            let _ = writeln!(dot, "  n{number} [label=\"{text}\" shape={shape}{alarm}];");
        }
        for edge in &self.edges {
            let colour = colour(edge.dtype);
            let narrowed = matches!(edge.happened, Happened::Narrowed | Happened::Refused);
            let (style, font) = if narrowed { (" style=dashed penwidth=2", ALARM) } else { ("", colour) };
            let text = escaped(&edge.text);
            let _ = writeln!(
                dot,
                "  n{} -> n{} [color=\"{colour}\" fontcolor=\"{font}\" label=\"{text}\"{style}];",
                edge.from, edge.to
            );
        }
        dot.push_str("}\n");
        dot
    }
}

/// For use between quotation marks.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}
