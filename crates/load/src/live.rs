// SPDX-License-Identifier: Apache-2.0
//! The rate and percentiles of the moment, on standard error: one line that is
//! renewed on a terminal, a line every few seconds elsewhere.

use crate::report::human;
use crate::sample::Sample;
use crate::summary::{Summary, Times};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const ON_TERMINAL: Duration = Duration::from_millis(250);
const ELSEWHERE: Duration = Duration::from_secs(5);

pub struct Live {
    way: Option<Way>,
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
    pub fn new(silent: bool) -> Self {
        let way = match (silent, std::io::stderr().is_terminal()) {
            (true, _) => None,
            (false, true) => Some(Way::Renewed),
            (false, false) => Some(Way::Lines),
        };
        let now = Instant::now();
        Self { way, started: now, shown: now, recent: Times::new(), errors: 0, requests: 0 }
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
        let times = [50.0, 95.0, 99.0].map(|percent| human(self.recent.percentile(percent)));
        let line = format!(
            "{:4.0} s  {total} requests  {:.0}/s  p50 {}  p95 {}  p99 {}  errors {}",
            self.started.elapsed().as_secs_f64(),
            self.requests as f64 / passed.as_secs_f64(),
            times[0],
            times[1],
            times[2],
            self.errors,
        );
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
