// SPDX-License-Identifier: Apache-2.0
use super::graph::{Graph, Node};
use tare_command::terminal::printable;
use tare_map::Reading;

/// A picture for Graphviz.
pub fn whole(reading: &Reading) -> String {
    let graph = Graph::new(reading);
    let mut text = "digraph map {\n  rankdir=LR;\n".to_owned();
    if !reading.is_complete() {
        text += &format!("  label={};\n", quoted("not complete: --json shows what is missing"));
    }
    for (number, node) in graph.nodes.iter().enumerate() {
        text += &match node {
            Node::Program { name, .. } => {
                format!("  n{number} [shape=box, label={}];\n", quoted(name))
            }
            Node::Address(address) => {
                format!("  n{number} [shape=ellipse, label={}];\n", quoted(&address.to_string()))
            }
        };
    }
    for arrow in &graph.arrows {
        text += &format!("  n{} -> n{} [label={}];\n", arrow.from, arrow.to, quoted(&arrow.label));
    }
    text + "}\n"
}

/// Other programs chose the text: within quotes, DOT has escapes of its own (`\N`) and HTML
/// entities.
fn quoted(text: &str) -> String {
    let text = printable(text, &[]);
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;"))
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::{edge, reading};
    use super::*;
    use tare_map::Role;

    #[test]
    fn names_of_others_stay_within_their_quotes() {
        assert_eq!(quoted("a\"]; b -> c \\N &lt;\n"), r#""a\"]; b -> c \\N &amp;lt;\\x0a""#);
    }

    #[test]
    fn graph_is_a_digraph() {
        let text = whole(&reading(vec![edge(Role::Client, "curl", "10.0.0.1", "10.0.0.2")]));
        assert_eq!(
            text,
            "digraph map {\n  rankdir=LR;\n  n0 [shape=box, label=\"curl\"];\n  n1 \
             [shape=ellipse, label=\"10.0.0.2\"];\n  n0 -> n1 [label=\"tcp 80 (http), 124 \
             B\"];\n}\n"
        );
    }
}
