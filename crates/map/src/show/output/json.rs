// SPDX-License-Identifier: Apache-2.0
use serde::Serialize;
use std::borrow::Cow;
use tare_command::terminal::printable_json;
use tare_map::{Completeness, Cost, Edge, Method, Missing, Reading};

/// All edges so far.
#[derive(Serialize)]
struct Object<'reading> {
    method: Method,
    seconds: f64,
    #[serde(flatten)]
    interval: Option<Interval>,
    complete: bool,
    missing: &'reading [Missing],
    completeness: Completeness,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracer: Option<&'reading Cost>,
    edges: &'reading [Edge],
}

#[derive(Serialize)]
struct Interval {
    interval: u64,
    missed_intervals: u64,
}

/// One object with all edges.
pub fn whole(
    method: Method,
    reading: &Reading,
    seconds: f64,
    cost: Option<&Cost>,
) -> serde_json::Result<String> {
    let object = object(method, reading, seconds, cost, None);
    Ok(printable_line(serde_json::to_string_pretty(&object)?))
}

/// The same in one line, with the number of the interval.
pub fn line(
    method: Method,
    reading: &Reading,
    seconds: f64,
    cost: Option<&Cost>,
    interval: u64,
    missed_intervals: u64,
) -> serde_json::Result<String> {
    let interval = Some(Interval { interval, missed_intervals });
    let object = object(method, reading, seconds, cost, interval);
    Ok(printable_line(serde_json::to_string(&object)?))
}

/// Of a megabyte that is harmless, there is no copy.
fn printable_line(mut json: String) -> String {
    if let Cow::Owned(escaped) = printable_json(&json) {
        json = escaped;
    }
    json.push('\n');
    json
}

fn object<'reading>(
    method: Method,
    reading: &'reading Reading,
    seconds: f64,
    tracer: Option<&'reading Cost>,
    interval: Option<Interval>,
) -> Object<'reading> {
    Object {
        method,
        seconds,
        interval,
        complete: reading.is_complete(),
        missing: &reading.missing,
        completeness: reading.completeness,
        tracer,
        edges: &reading.edges,
    }
}
