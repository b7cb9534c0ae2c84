// SPDX-License-Identifier: Apache-2.0
use super::graph::{Graph, Node};
use std::fmt::Write as _;
use tare_command::terminal::printable;
use tare_map::Reading;

/// A flowchart for Mermaid.
pub fn whole(reading: &Reading) -> String {
    let graph = Graph::new(reading);
    let mut text = "flowchart LR\n".to_owned();
    if !reading.is_complete() {
        text += "  incomplete[\"not complete: --json shows what is missing\"]\n";
    }
    for (number, node) in graph.nodes.iter().enumerate() {
        text += &match node {
            Node::Program { name, .. } => format!("  n{number}[{}]\n", quoted(name)),
            Node::Address(address) => format!("  n{number}([{}])\n", quoted(&address.to_string())),
        };
    }
    for arrow in &graph.arrows {
        text += &format!("  n{} -->|{}| n{}\n", arrow.from, quoted(&arrow.label), arrow.to);
    }
    text
}

/// Other programs chose the text: all that could end a label, or be Markdown or HTML in it, is
/// the number of the character.
fn quoted(text: &str) -> String {
    let mut shown = String::from('"');
    for character in printable(text, &[]).chars() {
        if character.is_alphanumeric() || " .,:-()/".contains(character) {
            shown.push(character);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(shown, "#{};", u32::from(character));
        }
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::{edge, reading};
    use super::*;
    use tare_map::Role;

    #[test]
    fn names_of_others_stay_within_their_quotes() {
        assert_eq!(quoted("redis-server"), "\"redis-server\"");
        assert_eq!(quoted("\"]<b>`#"), "\"#34;#93;#60;b#62;#96;#35;\"");
        assert_eq!(quoted("a\nb"), "\"a#92;x0ab\"");
    }

    #[test]
    fn graph_is_a_flowchart() {
        let text = whole(&reading(vec![edge(Role::Server, "nginx", "10.0.0.2", "10.0.0.1")]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "flowchart LR",
                "  n0([\"10.0.0.1\"])",
                "  n1[\"nginx\"]",
                "  n0 -->|\"tcp 80 (http), 124 B\"| n1"
            ]
        );
    }
}
