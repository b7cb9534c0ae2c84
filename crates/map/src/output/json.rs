// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};
use tare_map::{Cost, Method, Reading};

/// One object with all edges.
pub fn whole(method: Method, reading: &Reading, seconds: f64, cost: Option<&Cost>) -> String {
    format!("{:#}\n", object(method, reading, seconds, cost))
}

/// The same in one line, with the number of the interval.
pub fn line(
    method: Method,
    reading: &Reading,
    seconds: f64,
    cost: Option<&Cost>,
    interval: u64,
    missed_intervals: u64,
) -> String {
    let mut object = object(method, reading, seconds, cost);
    object["interval"] = interval.into();
    object["missed_intervals"] = missed_intervals.into();
    format!("{object}\n")
}

fn object(method: Method, reading: &Reading, seconds: f64, cost: Option<&Cost>) -> Value {
    let mut object = json!({
        "method": method,
        "seconds": seconds,
        "complete": reading.completeness.is_complete(),
        "completeness": reading.completeness,
        "edges": reading.edges,
    });
    if let Some(cost) = cost {
        object["tracer"] = json!(cost);
    }
    object
}
