// SPDX-License-Identifier: Apache-2.0
//! Rates and percentiles by target, for the live line and the end.

use super::sample::{ErrorKind, Sample};
use crate::clock::Nanoseconds;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The longest time that keeps its digits: an hour, in ns.
const LONGEST: u64 = 3_600_000_000_000;

/// Times of requests to one target, those that succeeded.
pub struct Times {
    bins: Histogram<u64>,
    sum: i128,
    max: Nanoseconds,
}

/// One target as far as it was measured.
pub struct Summary {
    pub name: String,
    pub requests: u64,
    pub errors: u64,
    by_kind: BTreeMap<&'static str, u64>,
    /// Statuses of HTTP that were no success.
    by_status: BTreeMap<u16, u64>,
    /// Time of its slices, ns.
    pub duration: Nanoseconds,
    /// From when a request should have started to its last byte.
    pub response: Times,
    /// From when it started to its last byte.
    pub service: Times,
}

impl Times {
    pub fn new() -> Self {
        let bins = Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds are allowed");
        Self { bins, sum: 0, max: 0 }
    }

    pub fn add(&mut self, time: Nanoseconds) {
        self.bins.saturating_record(time.max(0).unsigned_abs());
        self.sum += i128::from(time);
        self.max = self.max.max(time);
    }

    pub fn clear(&mut self) {
        self.bins.reset();
        self.sum = 0;
        self.max = 0;
    }

    /// A percentile in ns to 0.1 %, `None` without any request.
    pub fn percentile(&self, percent: f64) -> Option<Nanoseconds> {
        let value = self.bins.value_at_quantile(percent / 100.0);
        (!self.bins.is_empty()).then(|| value.cast_signed().min(self.max))
    }

    /// To 0.1 %.
    pub fn min(&self) -> Option<Nanoseconds> {
        (!self.bins.is_empty()).then(|| self.bins.min().cast_signed())
    }

    fn merge(&mut self, other: &Self) {
        self.bins.add(&other.bins).expect("both have the same bounds");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    pub fn max(&self) -> Option<Nanoseconds> {
        (!self.bins.is_empty()).then_some(self.max)
    }

    /// The exact mean, ns.
    pub fn mean(&self) -> Option<f64> {
        (!self.bins.is_empty()).then(|| self.sum as f64 / self.bins.len() as f64)
    }

    fn describe(&self, prefix: &str, into: &mut Map<String, Value>) {
        for (name, percent) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)] {
            into.insert(format!("{prefix}{name}_ns"), json!(self.percentile(percent)));
        }
        into.insert(format!("{prefix}max_ns"), json!(self.max()));
        into.insert(format!("{prefix}mean_ns"), json!(self.mean()));
    }
}

impl Summary {
    pub fn new(name: String) -> Self {
        Self {
            name,
            requests: 0,
            errors: 0,
            by_kind: BTreeMap::new(),
            by_status: BTreeMap::new(),
            duration: 0,
            response: Times::new(),
            service: Times::new(),
        }
    }

    pub fn add(&mut self, sample: &Sample) {
        self.requests += 1;
        match sample.outcome.error {
            None => {
                self.response.add(sample.response());
                self.service.add(sample.duration);
            }
            Some(kind) => {
                self.errors += 1;
                *self.by_kind.entry(kind.name()).or_default() += 1;
                if kind == ErrorKind::Status && sample.outcome.status != 0 {
                    *self.by_status.entry(sample.outcome.status).or_default() += 1;
                }
            }
        }
    }

    /// Adds what another target had in the same time.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        for (kind, count) in &other.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
        }
        self.response.merge(&other.response);
        self.service.merge(&other.service);
    }

    /// Successful requests a second of the target's slices.
    pub fn rate(&self) -> f64 {
        if self.duration == 0 {
            return 0.0;
        }
        (self.requests - self.errors) as f64 / (self.duration as f64 / 1e9)
    }

    /// The number of errors of each kind, and of each status of HTTP.
    pub fn errors_by_kind(&self) -> String {
        let kinds = self.by_kind.iter().map(|(kind, count)| {
            let statuses =
                self.by_status.iter().map(|(status, count)| format!("{status}: {count}"));
            let statuses = statuses.collect::<Vec<_>>().join(", ");
            if *kind == ErrorKind::Status.name() && !statuses.is_empty() {
                format!("{kind}: {count} ({statuses})")
            } else {
                format!("{kind}: {count}")
            }
        });
        kinds.collect::<Vec<_>>().join(", ")
    }

    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name));
        object.insert("requests".into(), json!(self.requests));
        object.insert("errors".into(), json!(self.errors));
        object.insert("rate".into(), json!(self.rate()));
        object.insert("duration_s".into(), json!(self.duration as f64 / 1e9));
        self.response.describe("", &mut object);
        self.service.describe("service_", &mut object);
        object.insert("errors_by_kind".into(), json!(self.by_kind));
        object.insert("errors_by_status".into(), json!(self.by_status));
        Value::Object(object)
    }
}
