// SPDX-License-Identifier: Apache-2.0
//! What the hook saw and what it cost, for people and for programs.

use crate::costs::{Costs, Function, sum};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tare_clock::Rate;

const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];

/// What else is told of a run.
pub struct Run {
    pub keywords: usize,
    pub reloads: u64,
    pub rules_refused: u64,
    pub events_written: u64,
    pub events_lost: u64,
    /// There was no file for them.
    pub events_unwanted: u64,
    /// Whether ticks have one length, so that times can be believed.
    pub ticks_invariant: bool,
}

pub fn to_json(costs: &Costs, run: &Run, rate: Rate) -> Value {
    let functions: Vec<Value> =
        costs.functions.iter().map(|function_costs| function(function_costs, rate)).collect();
    json!({
        "functions": functions,
        "not_seen": costs.unseen.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
        "programs": costs.attached,
        "events": {
            "written": run.events_written,
            "lost": run.events_lost,
            "unwanted": run.events_unwanted,
        },
        "rules": {
            "keywords": run.keywords,
            "reloads": run.reloads,
            "refused": run.rules_refused,
        },
        "ticks_invariant": run.ticks_invariant,
    })
}

fn function(function: &Function, rate: Rate) -> Value {
    let mut value = json!({"function": function.name});
    for (name, count) in &function.counters {
        value[*name] = json!(count);
    }
    value["own_time_ns"] = QUANTILES
        .iter()
        .map(|(name, quantile)| ((*name).to_owned(), json!(function.own_time(*quantile, rate))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    value
}

pub fn to_table(costs: &Costs, run: &Run, rate: Rate) -> String {
    let mut rows = vec![
        [
            "function",
            "sockets",
            "other files",
            "searched B",
            "matches",
            "blocked",
            "p50 ns",
            "p99 ns",
            "max ns",
        ]
        .map(str::to_owned),
    ];
    for function in &costs.functions {
        let [p50, p99, max] = QUANTILES.map(|(_, quantile)| {
            function.own_time(quantile, rate).map_or_else(|| "-".to_owned(), |ns| ns.to_string())
        });
        let count = |name| function.counter(name).to_string();
        rows.push([
            function.name.to_owned(),
            count("calls_socket"),
            count("calls_other"),
            count("bytes_searched"),
            count("matches"),
            count("blocked"),
            p50,
            p99,
            max,
        ]);
    }
    let mut text = String::from("tare-hook: calls by function, and the hook's own time per call\n");
    text.push_str(&align(&rows));
    let _ = writeln!(
        text,
        "events: {} written, {} lost, {} without a file; rules: {} keywords, {} reloads, {} refused; \
         {} programs",
        run.events_written,
        run.events_lost,
        run.events_unwanted,
        run.keywords,
        run.reloads,
        run.rules_refused,
        costs.attached
    );
    text.push_str(&not_seen(costs));
    if costs.attached == 0 {
        text.push_str(
            "no program loaded the library, so the numbers above do not include this command\n",
        );
    }
    if !run.ticks_invariant {
        text.push_str(
            "the tick counter of this processor has no constant rate, so times are \
                       unreliable\n",
        );
    }
    text
}

fn not_seen(costs: &Costs) -> String {
    let unsearched = sum(costs.functions.iter().map(|function| function.counter("bytes_unseen")));
    let mut all: Vec<String> = costs
        .unseen
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {}", name.replace('_', " ")))
        .collect();
    if unsearched > 0 {
        all.push(format!("{unsearched} bytes that the kernel moved (sendfile, splice)"));
    }
    let counted =
        if all.is_empty() { "no such call or byte was counted".into() } else { all.join(", ") };
    format!(
        "not searched: {counted}; static programs and raw system calls are never seen or \
             counted\n"
    )
}

/// The first column to the left, numbers to the right.
fn align<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let _ = write!(text, "{:<width$}", row[0], width = width(0));
        for (column, cell) in row.iter().enumerate().skip(1) {
            let _ = write!(text, "  {cell:>width$}", width = width(column));
        }
        text.push('\n');
    }
    text
}
