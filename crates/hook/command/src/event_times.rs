// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;
use tare_clock::{Rate, Snapshot};

/// Two readings of the clocks disagree by less about the same moment, unless they were set.
const DISAGREEMENT: i64 = 1_000_000;
/// Periods that are kept, for events that arrive late by as many writes.
const PERIODS: usize = 1024;

/// Converts ticks of events to times, in the order of the ticks.
///
/// The collector reads the clocks again for each write, and two readings differ slightly. An event
/// can arrive after later ones, if its thread lost the CPU between reading the tick counter and
/// writing to its ring. It is converted by the reading of its own period, so that times of a
/// thread never decrease.
pub struct EventTimes {
    /// In the order of their first ticks.
    periods: VecDeque<Period>,
    /// Ticks and time of the latest event.
    latest: (u64, i64),
}

/// Events between two readings of the clocks.
struct Period {
    first_ticks: u64,
    /// Time of the latest event before it.
    floor: i64,
    clocks: Snapshot,
    rate: Rate,
}

impl EventTimes {
    pub fn new() -> Self {
        Self { periods: VecDeque::new(), latest: (0, i64::MIN) }
    }

    /// Begins a period: events later than all before are converted by this reading.
    pub fn begin(&mut self, clocks: &Snapshot, rate: Rate) {
        let (ticks, floor) = self.latest;
        let first_ticks = if self.periods.is_empty() { 0 } else { ticks.saturating_add(1) };
        let has_no_events = |period: &mut Period| period.first_ticks > ticks;
        self.periods.pop_back_if(has_no_events);
        if self.periods.len() == PERIODS {
            self.periods.pop_front();
        }
        self.periods.push_back(Period { first_ticks, floor, clocks: *clocks, rate });
    }

    /// Nanoseconds since the Unix epoch; 0 before the first period.
    pub fn at(&mut self, ticks: u64) -> i64 {
        let later = self.periods.partition_point(|period| period.first_ticks <= ticks);
        let Some(period) = self.periods.get(later.saturating_sub(1)) else { return 0 };
        let time = period.clocks.realtime_at(ticks, period.rate);
        let is_close = period.floor.saturating_sub(time) < DISAGREEMENT;
        let time = if later > 0 && is_close { time.max(period.floor) } else { time };
        if ticks >= self.latest.0 {
            self.latest = (ticks, time);
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(ticks: u64, realtime_ns: i64) -> Snapshot {
        Snapshot { ticks, monotonic_ns: 0, realtime_ns, width: 0 }
    }

    /// 2 GHz.
    fn rate() -> Rate {
        let later = Snapshot { ticks: 2_000, monotonic_ns: 1_000, ..reading(0, 0) };
        Rate::between(&reading(0, 0), &later).unwrap()
    }

    #[test]
    fn late_event_is_converted_by_the_reading_of_its_period() {
        let mut times = EventTimes::new();
        assert_eq!(times.at(7), 0);
        times.begin(&reading(1_000, 5_000), rate());
        assert_eq!(times.at(1_400), 5_200);
        times.begin(&reading(1_000, 4_900), rate());
        times.begin(&reading(1_000, 4_900), rate());
        assert_eq!(times.at(1_410), 5_200, "not before the event before it");
        assert_eq!(times.at(1_390), 5_195, "late");
        assert_eq!(times.at(1_900), 5_350);
        times.begin(&reading(1_000, -9_000_000), rate());
        assert_eq!(times.at(2_000), -8_999_500, "the clock was set");
        assert_eq!(times.at(1_900), 5_350);
    }

    #[test]
    fn old_periods_are_dropped() {
        let mut times = EventTimes::new();
        for turn in 0..2 * PERIODS as u64 {
            times.begin(&reading(0, 0), rate());
            assert_eq!(times.at(2 * turn), turn as i64);
        }
        assert_eq!(times.periods.len(), PERIODS);
        assert_eq!(times.at(2), 1);
    }

    proptest! {
        #[test]
        fn times_are_in_the_order_of_ticks(
            turns in prop::collection::vec(
                (-500_000i64..500_000, prop::collection::vec(0u64..3_000_000, 0..6)),
                1..40,
            ),
        ) {
            let mut times = EventTimes::new();
            let mut seen = Vec::new();
            for (turn, (error, events)) in turns.iter().enumerate() {
                // Some events are earlier than those of the turns before.
                let begin = turn as u64 * 1_000_000;
                times.begin(&reading(begin, (begin / 2) as i64 + error), rate());
                for event in events {
                    seen.push((begin + event, times.at(begin + event)));
                }
            }
            seen.sort_unstable();
            prop_assert!(seen.is_sorted_by_key(|(_, time)| *time), "{seen:?}");
        }
    }
}
