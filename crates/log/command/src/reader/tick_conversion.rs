// SPDX-License-Identifier: Apache-2.0
use tare_clock::{Rate, Snapshot};

/// Two readings that differ by more than this from what the ticks between them say have the
/// setting of a clock between them, not its slewing.
const STEP: i64 = 1_000_000;

/// Turns ticks into nanoseconds since the Unix epoch, by the readings of the clocks in a file.
#[derive(Default)]
pub struct TickConversion {
    /// In order of their ticks.
    readings: Vec<Snapshot>,
    /// Over all of them: it is better than over the least time between two.
    rate: Option<Rate>,
}

impl TickConversion {
    /// Of a clock whose ticks are nanoseconds: one reading is enough.
    pub fn of_nanoseconds() -> Self {
        Self { readings: Vec::new(), rate: Some(Rate::NANOSECOND) }
    }

    pub fn extend(&mut self, readings: impl IntoIterator<Item = Snapshot>) {
        let known = self.readings.len();
        self.readings.extend(readings);
        let added = &self.readings[known.saturating_sub(1)..];
        if !added.is_sorted_by_key(|reading| reading.ticks) {
            self.readings.sort_by_key(|reading| reading.ticks);
        }
        let ends = self.readings.first().zip(self.readings.last());
        self.rate = ends.and_then(|(first, last)| Rate::between(first, last)).or(self.rate);
    }

    /// Sets the system time of each reading to what is returned for its monotonic time.
    pub fn set_system_times(&mut self, mut system_time: impl FnMut(i64) -> Option<i64>) {
        for reading in &mut self.readings {
            reading.realtime_ns = system_time(reading.monotonic_ns).unwrap_or(reading.realtime_ns);
        }
    }

    /// In order of their ticks.
    pub fn readings(&self) -> &[Snapshot] {
        &self.readings
    }

    /// `None` where there are too few readings: of ticks, two with time between. Later ticks have later times,
    /// unless the clock was set back.
    pub fn at(&self, ticks: u64) -> Option<i64> {
        let rate = self.rate?;
        let after = self.readings.partition_point(|known| known.ticks <= ticks);
        let nearest = self.readings.get(after.saturating_sub(1))?;
        let by_rate = nearest.realtime_at(ticks, rate);
        match self.readings.get(after) {
            Some(next) if after > 0 && !is_set_between(nearest, next, rate) => {
                Some(between(nearest, next, ticks))
            }
            _ => Some(by_rate),
        }
    }

    /// Nanoseconds from one moment to another, whatever was done to the clock meanwhile.
    pub fn between(&self, first: u64, last: u64) -> Option<f64> {
        let length = self.rate?.length(first.abs_diff(last));
        Some(if last < first { -length } else { length })
    }
}

fn is_set_between(first: &Snapshot, second: &Snapshot, rate: Rate) -> bool {
    let expected = first.realtime_at(second.ticks, rate);
    expected.abs_diff(second.realtime_ns) > STEP as u64
}

/// On the line between two readings, so that times are right at both and never fall back.
fn between(first: &Snapshot, second: &Snapshot, ticks: u64) -> i64 {
    let length = i128::from(second.realtime_ns) - i128::from(first.realtime_ns);
    let passed = i128::from(ticks - first.ticks);
    let part = length * passed / i128::from((second.ticks - first.ticks).max(1));
    first.realtime_ns.saturating_add(part as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 2 GHz.
    fn reading(ticks: u64, realtime_ns: i64) -> Snapshot {
        let monotonic_ns = (ticks / 2) as i64;
        Snapshot { ticks, monotonic_ns, realtime_ns, width: 0 }
    }

    fn times(readings: &[Snapshot]) -> TickConversion {
        let mut times = TickConversion::default();
        times.extend(readings.iter().copied());
        times
    }

    #[test]
    fn times_are_right_at_each_reading_and_never_fall_back() {
        let second = 2_000_000_000;
        // The clock is slewed: the second second has 200,000 ns less.
        let all = [
            reading(0, 0),
            reading(second, 1_000_000_000),
            reading(2 * second, 1_999_800_000),
            reading(3 * second, 3_000_000_000),
        ];
        let mut times = times(&[all[2], all[0]]);
        times.extend([all[3], all[1]]);
        for reading in all {
            assert_eq!(times.at(reading.ticks), Some(reading.realtime_ns));
        }
        let at = (0..=3 * second).step_by(9_999_999).map(|ticks| times.at(ticks).unwrap());
        assert!(at.is_sorted());
        assert_eq!(times.at(3 * second + 20), Some(3_000_000_010));
        assert_eq!(times.between(second, 2 * second), Some(1e9));
        assert_eq!(times.between(21, 0), Some(-10.5));
    }

    #[test]
    fn a_clock_that_was_set_does_not_stretch_time() {
        let hour = 3_600_000_000_000;
        let times = times(&[reading(0, 0), reading(2_000_000_000, 1_000_000_000 - hour)]);
        assert_eq!(times.at(1_999_999_998), Some(999_999_999));
        assert_eq!(times.at(2_000_000_000), Some(1_000_000_000 - hour));
    }

    #[test]
    fn one_reading_gives_times_only_where_a_tick_is_a_nanosecond() {
        assert_eq!(times(&[reading(5, 5)]).at(5), None);
        let mut nanoseconds = TickConversion::of_nanoseconds();
        assert_eq!(nanoseconds.at(5), None);
        nanoseconds.extend([reading(5, 5)]);
        assert_eq!(nanoseconds.at(8), Some(8));
        assert_eq!(times(&[]).between(1, 2), None);
    }
}
