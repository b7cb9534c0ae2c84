// SPDX-License-Identifier: Apache-2.0
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;
use tare_clock::{Rate, Snapshot};
use tare_hook_segment::Shared;

/// The tick rate since the hook began. Events may have waited long for a tare-hook: over
/// minutes, the rate of its own first milliseconds would be milliseconds wrong.
pub struct Pace {
    first: Snapshot,
}

impl Pace {
    /// The hook begins now.
    pub fn begin(shared: &Shared) {
        let first = Snapshot::take();
        shared.first_ticks.store(first.ticks, Relaxed);
        shared.first_ns.store(first.monotonic_ns as u64, Relaxed);
    }

    pub fn of(shared: &Shared) -> Self {
        Self { first: shared.beginning() }
    }

    /// Where none comes of the beginning, because it is now or was overwritten, that is moved.
    pub fn rate(&mut self) -> Rate {
        loop {
            let now = Snapshot::take();
            if let Some(rate) = Rate::between(&self.first, &now) {
                return rate;
            }
            self.first = now;
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;

    #[test]
    fn who_takes_over_knows_the_rate_since_the_beginning() {
        const MINUTE: u64 = 60_000_000_000;
        let shared = Segments::create().unwrap().0.shared;
        let now = Snapshot::take();
        // As if each tick of the last minute had taken 3 ns.
        shared.first_ticks.store(now.ticks.wrapping_sub(MINUTE / 3), Relaxed);
        shared.first_ns.store((now.monotonic_ns as u64).wrapping_sub(MINUTE), Relaxed);
        let length = Pace::of(shared).rate().nanoseconds(1_000_000);
        assert!((2_900_000..=3_100_000).contains(&length), "{length}");
    }

    #[test]
    fn a_beginning_that_cannot_be_is_replaced() {
        let shared = Segments::create().unwrap().0.shared;
        let expected = Pace::of(shared).rate().nanoseconds(1_000_000_000);
        for (ticks, ns) in [(u64::MAX, 0), (0, u64::MAX / 2), (0, 1 << 63)] {
            shared.first_ticks.store(ticks, Relaxed);
            shared.first_ns.store(ns, Relaxed);
            let told = Pace::of(shared).rate().nanoseconds(1_000_000_000);
            assert!(told.abs_diff(expected) < expected / 10, "{told} {expected}");
        }
    }
}
