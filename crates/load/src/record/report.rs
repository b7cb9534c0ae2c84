// SPDX-License-Identifier: Apache-2.0
//! What is printed at the end: for people, or as JSON.

use super::summary::{Summary, Times};
use crate::clock::Nanoseconds;
use crate::schedule::capacity::Capacity;
use serde_json::{Value, json};

/// The object of `--json`; a search for the capacity has no targets to report.
pub fn json(summaries: &[Summary], capacity: Option<Capacity>, seed: u64) -> Value {
    let targets: Vec<_> = summaries.iter().map(Summary::to_json).collect();
    let capacity = capacity.map(|found| json!({"rate": found.rate, "users": found.users}));
    json!({"targets": targets, "capacity": capacity, "seed": seed})
}

pub fn capacity(found: Option<Capacity>) -> String {
    match found {
        Some(found) => {
            let plural = if found.users == 1 { "" } else { "s" };
            format!("{:.0} requests/s with {} user{plural}\n", found.rate, found.users)
        }
        None => "stopped before the capacity was found\n".to_owned(),
    }
}

/// A time in the unit that suits it.
pub fn human(time: Option<Nanoseconds>) -> String {
    let Some(time) = time else { return "-".to_owned() };
    let time = time as f64;
    match time {
        ..1e3 => format!("{time:.0} ns"),
        ..1e6 => format!("{:.1} µs", time / 1e3),
        ..1e9 => format!("{:.2} ms", time / 1e6),
        _ => format!("{:.2} s", time / 1e9),
    }
}

/// A table of all targets; service time in rows of its own where it can differ from
/// response time.
pub fn table(summaries: &[Summary], with_service: bool) -> String {
    let mut rows = vec![
        ["target", "time", "requests", "errors", "rate/s", "p50", "p95", "p99", "max", "mean"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for summary in summaries {
        let counts = [
            summary.requests.to_string(),
            summary.errors.to_string(),
            format!("{:.0}", summary.rate()),
        ];
        rows.push(row(&summary.name, "response", counts, &summary.response));
        if with_service {
            rows.push(row("", "service", [const { String::new() }; 3], &summary.service));
        }
    }
    let failed = summaries.iter().filter(|summary| summary.errors > 0);
    let errors =
        failed.map(|target| format!("errors of {}: {}\n", target.name, target.errors_by_kind()));
    align(&rows) + &errors.collect::<String>()
}

fn row(name: &str, kind: &str, counts: [String; 3], times: &Times) -> Vec<String> {
    let mut row = vec![name.to_owned(), kind.to_owned()];
    row.extend(counts);
    row.extend([50.0, 95.0, 99.0].map(|percent| human(times.percentile(percent))));
    row.push(human(times.max()));
    row.push(human(times.mean().map(|mean| mean.round() as Nanoseconds)));
    row
}

/// Columns two blanks apart: words to the left, numbers to the right.
fn align(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let shown =
            [None, Some(999), Some(1_500), Some(2_340_000), Some(61_000_000_000)].map(human);
        assert_eq!(shown, ["-", "999 ns", "1.5 µs", "2.34 ms", "61.00 s"]);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "b", "10"], ["long", "", "1"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(align(&rows), "a     b  10\nlong      1\n");
    }
}
