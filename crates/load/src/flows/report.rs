// SPDX-License-Identifier: Apache-2.0
//! Reports of flows, in the columns and keys of connperf.

use crate::clock::Nanoseconds;
use crate::record::summary::Summary;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub const TOTAL: &str = "--- A result during total execution time ---\n";

/// What a server had in some time.
pub struct Row {
    pub peer: String,
    pub summary: Summary,
}

/// Rows of one host become one, named by the host.
pub fn merged(peers: &[SocketAddr], rows: Vec<Row>) -> Vec<Row> {
    let mut hosts: BTreeMap<String, Row> = BTreeMap::new();
    for (peer, row) in peers.iter().zip(rows) {
        let host = peer.ip().to_string();
        match hosts.get_mut(&host) {
            Some(known) => known.summary.merge(&row.summary),
            None => drop(hosts.insert(host.clone(), Row { peer: host, summary: row.summary })),
        }
    }
    hosts.into_values().collect()
}

pub fn table(rows: &[Row]) -> String {
    let columns = [
        "PEER",
        "CNT",
        "LAT_MAX(µs)",
        "LAT_MIN(µs)",
        "LAT_MEAN(µs)",
        "LAT_90p(µs)",
        "LAT_95p(µs)",
        "LAT_99p(µs)",
        "RATE(/s)",
    ];
    let mut lines = vec![columns.map(str::to_owned)];
    for Row { peer, summary } in rows {
        let times = &summary.service;
        let micros = |time: Option<Nanoseconds>| {
            time.map_or_else(|| "-".to_owned(), |time| (time / 1_000).to_string())
        };
        lines.push([
            peer.clone(),
            (summary.requests - summary.errors).to_string(),
            micros(times.max()),
            micros(times.min()),
            micros(times.mean().map(|mean| mean as Nanoseconds)),
            micros(times.percentile(90.0)),
            micros(times.percentile(95.0)),
            micros(times.percentile(99.0)),
            format!("{:.2}", summary.rate()),
        ]);
    }
    let mut text = String::new();
    for line in &lines {
        let [peer, count, rest @ ..] = line;
        let rest: Vec<_> = rest.iter().map(|cell| format!("{cell:<15}")).collect();
        let whole = format!("{peer:<25} {count:<10} {}", rest.join(" "));
        text.push_str(whole.trim_end());
        text.push('\n');
    }
    for Row { peer, summary } in rows.iter().filter(|row| row.summary.errors > 0) {
        let kinds = summary.errors_by_kind();
        text.push_str(&format!("{peer}: {} failed ({kinds})\n", summary.errors));
    }
    text
}

/// One object per line and server; `is_total` marks those of the whole time.
pub fn json_lines(rows: &[Row], now: Nanoseconds, is_total: bool) -> String {
    let micros = |time: Option<f64>| time.map(|time| time / 1e3);
    rows.iter()
        .map(|Row { peer, summary }| {
            let times = &summary.service;
            let at = |percent| micros(times.percentile(percent).map(|time| time as f64));
            let line = json!({
                "peer": peer,
                "count": summary.requests - summary.errors,
                "errors": summary.errors,
                "latency_max_us": micros(times.max().map(|time| time as f64)),
                "latency_min_us": micros(times.min().map(|time| time as f64)),
                "latency_mean_us": micros(times.mean()),
                "latency_90p_us": at(90.0),
                "latency_95p_us": at(95.0),
                "latency_99p_us": at(99.0),
                "rate_per_sec": summary.rate(),
                "timestamp": now as f64 / 1e9,
                "total": is_total,
            });
            format!("{line}\n")
        })
        .collect()
}

pub fn json(rows: &[Row], asked_per_second: f64) -> Value {
    let targets: Vec<_> = rows.iter().map(|row| row.summary.to_json()).collect();
    json!({"targets": targets, "asked_rate": asked_per_second})
}
