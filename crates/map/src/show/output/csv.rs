// SPDX-License-Identifier: Apache-2.0
use serde_json::Value;
use tare_map::{Edge, Protocol, Reading};
use tare_tables::EDGES;

/// The columns of `tables/edges.toml`, one line for each edge.
pub fn whole(reading: &Reading) -> String {
    let names: Vec<&str> = EDGES.columns.iter().map(|column| column.name.as_str()).collect();
    let mut text = names.join(",") + "\n";
    for edge in &reading.edges {
        let fields = serde_json::to_value(edge).unwrap_or_default();
        let values = names.iter().map(|name| cell(edge, &fields, name));
        text += &(values.collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

/// `fields` is the edge as JSON.
fn cell(edge: &Edge, fields: &Value, column: &str) -> String {
    let rtt = |value: fn(&tare_map::Rtt) -> u64| edge.rtt.as_ref().map(value);
    let number = match column {
        "failed" => Some(edge.failed.values().sum()),
        "broken" => Some(edge.broken.values().sum()),
        "send_errors" => Some(edge.send_errors.values().sum()),
        "receive_errors" => Some(edge.receive_errors.values().sum()),
        "rtt_count" => Some(edge.rtt.map_or(0, |rtt| rtt.count)),
        "rtt_sum_us" => rtt(|rtt| rtt.sum_us),
        "rtt_min_us" => rtt(|rtt| rtt.min_us),
        "rtt_max_us" => rtt(|rtt| rtt.max_us),
        "closed" | "active" if !edge.bytes_known && edge.protocol == Protocol::Tcp => None,
        "bytes_sent" | "bytes_received" | "packets_sent" | "packets_received"
            if !edge.has_bytes() =>
        {
            None
        }
        // The rest are fields of the same name.
        _ => {
            return match fields.get(column) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => quoted(text),
                Some(value) => value.to_string(),
            };
        }
    };
    number.map_or_else(String::new, |number| number.to_string())
}

/// RFC 4180; other programs chose the text, and a spreadsheet runs what looks like a formula.
fn quoted(text: &str) -> String {
    let text = tare_command::terminal::printable(text, &[]);
    let formula = text.starts_with(['=', '+', '-', '@']);
    let mark = if formula { "'" } else { "" };
    if formula || text.contains([',', '"']) {
        return format!("\"{mark}{}\"", text.replace('"', "\"\""));
    }
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_stays_one_cell() {
        assert_eq!(quoted("nginx"), "nginx");
        assert_eq!(quoted("a,\"b\"\n"), "\"a,\"\"b\"\"\\x0a\"");
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        assert_eq!(quoted("::"), "::");
    }
}
