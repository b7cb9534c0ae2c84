// SPDX-License-Identifier: Apache-2.0
use serde_json::{Map, Value};
use tare_link_segment::{Counter, Statistics};

/// What the programs of a run counted, as a table or as a JSON object.
pub fn text(statistics: &Statistics, as_json: bool) -> String {
    let counts = Counter::ALL.iter().map(|counter| (counter.name(), statistics.get(*counter)));
    if as_json {
        let object: Map<String, Value> =
            counts.map(|(name, count)| (name.to_owned(), count.into())).collect();
        return format!("{}\n", Value::Object(object));
    }
    let mut text = String::from("tare-link: connections and bytes of all programs of this run\n");
    for (name, count) in counts {
        text.push_str(&format!("{:<20}  {count:>15}\n", name.replace('_', " ")));
    }
    text
}
