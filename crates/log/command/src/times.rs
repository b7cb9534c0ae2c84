// SPDX-License-Identifier: Apache-2.0
use tare_clock::{Rate, Snapshot};
use tare_log_file::Clock;

/// Turns ticks into nanoseconds since the Unix epoch, by the readings of the clocks in a file.
#[derive(Default)]
pub struct Times {
    /// In order of their ticks.
    readings: Vec<Snapshot>,
}

impl Times {
    pub fn add(&mut self, clock: Clock) {
        let Clock { ticks, monotonic_ns, realtime_ns, width } = clock;
        let place = self.readings.partition_point(|known| known.ticks < ticks);
        self.readings.insert(place, Snapshot { ticks, monotonic_ns, realtime_ns, width });
    }

    /// `None` where there are not two readings with time between.
    pub fn at(&self, ticks: u64) -> Option<i64> {
        let (first, last) = (self.readings.first()?, self.readings.last()?);
        let after = self.readings.partition_point(|known| known.ticks <= ticks);
        let nearest = &self.readings[after.saturating_sub(1)];
        // Over a second or so the rate is better than over the least time between two.
        let rate = Rate::between(first, last)?;
        Some(nearest.realtime_at(ticks, rate))
    }
}
