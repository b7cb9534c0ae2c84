// SPDX-License-Identifier: Apache-2.0
use crate::say;
use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Lines per `PERIOD` for each user.
const LINES: u32 = 5;
const PERIOD: Duration = Duration::from_secs(1);

/// Warnings that another program can cause: more than a few per second are counted instead of
/// printed, so that a flood neither fills a log nor slows the collector down. The warnings of one
/// user take nothing from another's.
#[derive(Debug, Default)]
pub struct UserWarnings(HashMap<u32, Lines>);

#[derive(Debug, Default)]
struct Lines {
    began: Option<Instant>,
    printed: u32,
    omitted: u64,
}

impl UserWarnings {
    /// Something about a program of this user.
    pub fn warn(&mut self, user: u32, what: impl Display) {
        if let Some(omitted) = self.0.entry(user).or_default().admit(Instant::now()) {
            say_omitted(omitted);
            say(what);
        }
    }
}

impl Drop for UserWarnings {
    fn drop(&mut self) {
        say_omitted(self.0.values().map(|lines| lines.omitted).sum());
    }
}

fn say_omitted(omitted: u64) {
    if omitted > 0 {
        say(format_args!("{omitted} more such warnings were omitted"));
    }
}

impl Lines {
    /// Whether a line may be printed now, and the number of lines that were not printed before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now.duration_since(began) >= PERIOD) {
            (self.began, self.printed) = (Some(now), 0);
        }
        self.printed += 1;
        if self.printed > LINES {
            self.omitted += 1;
            return None;
        }
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_is_counted_and_reported_in_the_next_period() {
        let (mut lines, begin) = (Lines::default(), Instant::now());
        for _ in 0..LINES {
            assert_eq!(lines.admit(begin), Some(0));
        }
        for _ in 0..1_000 {
            assert_eq!(lines.admit(begin + PERIOD / 2), None);
        }
        assert_eq!(lines.admit(begin + PERIOD), Some(1_000));
        assert_eq!(lines.admit(begin + PERIOD), Some(0));
    }
}
