// SPDX-License-Identifier: Apache-2.0
use crate::say;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Lines per `PERIOD`.
const LINES: u32 = 5;
const PERIOD: Duration = Duration::from_secs(1);

/// Warnings that another program can cause: more than a few per second are counted instead of
/// printed, so that a flood neither fills a log nor slows the collector down.
#[derive(Debug, Default)]
pub struct Complaints {
    began: Option<Instant>,
    lines: u32,
    omitted: u64,
}

impl Complaints {
    pub fn say(&mut self, what: impl Display) {
        if let Some(omitted) = self.admit(Instant::now()) {
            if omitted > 0 {
                say(format_args!("{omitted} more such warnings were omitted"));
            }
            say(what);
        }
    }

    /// Whether a line may be printed now, and the number of lines that were not printed before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.began.is_none_or(|began| now.duration_since(began) >= PERIOD) {
            (self.began, self.lines) = (Some(now), 0);
        }
        self.lines += 1;
        if self.lines > LINES {
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
        let (mut complaints, begin) = (Complaints::default(), Instant::now());
        for _ in 0..LINES {
            assert_eq!(complaints.admit(begin), Some(0));
        }
        for _ in 0..1_000 {
            assert_eq!(complaints.admit(begin + PERIOD / 2), None);
        }
        assert_eq!(complaints.admit(begin + PERIOD), Some(1_000));
        assert_eq!(complaints.admit(begin + PERIOD), Some(0));
    }
}
