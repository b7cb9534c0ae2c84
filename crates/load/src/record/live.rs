// SPDX-License-Identifier: Apache-2.0
//! The rate and percentiles of the moment, on standard error: one line that is
//! renewed on a terminal, a line every few seconds elsewhere.

use super::report::human;
use super::sample::Sample;
use super::summary::{Summary, Times};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const ON_TERMINAL: Duration = Duration::from_millis(250);
const ELSEWHERE: Duration = Duration::from_secs(5);

pub struct Live {
    way: Option<Way>,
    warm_up: Duration,
    started: Instant,
    shown: Instant,
    recent: Times,
    errors: u64,
    requests: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Renewed,
    Lines,
}

impl Live {
    /// Of the warm-up there is nothing to show but that it goes on.
    pub fn new(silent: bool, warm_up: Duration) -> Self {
        let way = match (silent, std::io::stderr().is_terminal()) {
            (true, _) => None,
            (false, true) => Some(Way::Renewed),
            (false, false) => Some(Way::Lines),
        };
        let now = Instant::now();
        let (recent, errors, requests) = (Times::new(), 0, 0);
        Self { way, warm_up, started: now, shown: now, recent, errors, requests }
    }

    pub fn add(&mut self, sample: &Sample) {
        if self.way.is_none() {
            return;
        }
        self.requests += 1;
        match sample.outcome.error {
            None => self.recent.add(sample.response()),
            Some(_) => self.errors += 1,
        }
    }

    /// Shows what came since it was last shown, if it is time to.
    pub fn show(&mut self, summaries: &[Summary]) {
        let Some(way) = self.way else { return };
        let passed = self.shown.elapsed();
        if passed < (if way == Way::Renewed { ON_TERMINAL } else { ELSEWHERE }) {
            return;
        }
        let total: u64 = summaries.iter().map(|summary| summary.requests).sum();
        let since = self.started.elapsed();
        let news = if total == 0 && since < self.warm_up {
            "warm-up".to_owned()
        } else {
            let times = [50.0, 95.0, 99.0].map(|percent| human(self.recent.percentile(percent)));
            let rate = self.requests as f64 / passed.as_secs_f64();
            let ([p50, p95, p99], errors) = (times, self.errors);
            format!(
                "{total} requests  {rate:.0}/s  p50 {p50}  p95 {p95}  p99 {p99}  errors {errors}"
            )
        };
        let line = format!("{:4.0} s  {news}", since.as_secs_f64());
        // Whoever closed standard error does not want the line.
        let mut stderr = std::io::stderr();
        let _ = match way {
            Way::Renewed => write!(stderr, "\r{line}\x1b[K"),
            Way::Lines => writeln!(stderr, "{line}"),
        };
        self.shown = Instant::now();
        self.recent.clear();
        self.requests = 0;
        self.errors = 0;
    }

    /// Clears the line that is renewed.
    pub fn end(&mut self) {
        if self.way.take() == Some(Way::Renewed) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
