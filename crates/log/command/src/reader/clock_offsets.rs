// SPDX-License-Identifier: Apache-2.0
//! From one machine's monotonic clock to another's, by what `tare log sync` has found.

use super::clock_drift::{DRIFT_PPM, drift};
use tare_log_file::{Boot, Relation};

/// Between two moments at which both clocks are related, what the one gains on the other in a
/// time changes by at most so many millionths of it: oscillators follow the temperature.
const WANDER_PPM: u64 = 1;

/// In the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockOffsets(Vec<OffsetSample>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OffsetSample {
    /// By the clock that is left.
    from_ns: i64,
    /// How far the other is ahead of it.
    ahead_ns: i64,
    error_ns: i64,
}

impl ClockOffsets {
    /// `None` where no relation is of both.
    pub fn of(from: Boot, to: Boot, relations: &[Relation]) -> Option<Self> {
        let mut samples: Vec<_> = relations
            .iter()
            .filter_map(|relation| {
                let Relation { here, there, error_ns } = relation;
                let (source, target) = match (here.boot, there.boot) {
                    both if both == (from, to) => (here, there),
                    both if both == (to, from) => (there, here),
                    _ => return None,
                };
                let ahead_ns = target.monotonic_ns.checked_sub(source.monotonic_ns)?;
                Some(OffsetSample {
                    from_ns: source.monotonic_ns,
                    ahead_ns,
                    error_ns: (*error_ns).max(0),
                })
            })
            .collect();
        samples.sort_by_key(|sample| sample.from_ns);
        (!samples.is_empty()).then_some(Self(samples))
    }

    /// What the other clock says at a moment of this, and how far that may be wrong.
    pub fn convert(&self, at_ns: i64) -> (i64, i64) {
        let next = self.0.partition_point(|sample| sample.from_ns <= at_ns);
        let (before, after) = (next.checked_sub(1).map(|index| self.0[index]), self.0.get(next));
        let (ahead_ns, error_ns) = match (before, after) {
            (Some(before), Some(after)) => between(before, *after, at_ns),
            (Some(only), None) => (only.ahead_ns, only.error_at(at_ns, DRIFT_PPM)),
            (None, Some(only)) => (only.ahead_ns, only.error_at(at_ns, DRIFT_PPM)),
            (None, None) => (0, i64::MAX),
        };
        (at_ns.saturating_add(ahead_ns), error_ns)
    }
}

impl OffsetSample {
    fn error_at(&self, at_ns: i64, ppm: u64) -> i64 {
        self.error_ns.saturating_add(drift(at_ns.abs_diff(self.from_ns), ppm))
    }
}

/// On the line between two.
fn between(before: OffsetSample, after: OffsetSample, at_ns: i64) -> (i64, i64) {
    let gained = i128::from(after.ahead_ns) - i128::from(before.ahead_ns);
    let (passed, whole) = (at_ns.abs_diff(before.from_ns), after.from_ns.abs_diff(before.from_ns));
    let part = gained * i128::from(passed) / i128::from(whole.max(1));
    let nearest = passed.min(after.from_ns.abs_diff(at_ns));
    let error = before.error_ns.max(after.error_ns).saturating_add(drift(nearest, WANDER_PPM));
    (before.ahead_ns.saturating_add(part as i64), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_log_file::Moment;

    const ONE: Boot = Boot([1; 16]);
    const OTHER: Boot = Boot([2; 16]);

    fn relation(one_ns: i64, other_ns: i64, error_ns: i64) -> Relation {
        let moment = |boot, monotonic_ns| Moment { boot, monotonic_ns, ..Moment::default() };
        Relation { here: moment(ONE, one_ns), there: moment(OTHER, other_ns), error_ns }
    }

    #[test]
    fn one_relation_holds_less_the_longer_ago_it_was() {
        let relations = [relation(1_000_000, 501_000_000, 70)];
        let offsets = ClockOffsets::of(OTHER, ONE, &relations).unwrap();
        assert_eq!(offsets.convert(501_000_000), (1_000_000, 70));
        assert_eq!(offsets.convert(511_000_000), (11_000_000, 70 + 2_000));
        assert_eq!(offsets.convert(491_000_000), (-9_000_000, 70 + 2_000));
        let back = ClockOffsets::of(ONE, OTHER, &relations).unwrap();
        assert_eq!(back.convert(1_000_000), (501_000_000, 70));
    }

    #[test]
    fn between_two_relations_is_the_line() {
        // The other clock gains 100 in 10,000,000.
        let all = [relation(20_000_000, 30_000_100, 50), relation(10_000_000, 20_000_000, 90)];
        let offsets = ClockOffsets::of(ONE, OTHER, &all).unwrap();
        assert_eq!(offsets.convert(10_000_000), (20_000_000, 90));
        assert_eq!(offsets.convert(15_000_000), (25_000_050, 90 + 5));
        assert_eq!(offsets.convert(20_000_000), (30_000_100, 50));
        assert_eq!(offsets.convert(19_000_000), (29_000_090, 90 + 1));
    }

    #[test]
    fn relations_of_others_are_none() {
        assert_eq!(ClockOffsets::of(ONE, Boot([3; 16]), &[relation(1, 2, 3)]), None);
        let never = relation(i64::MIN, i64::MAX, 1);
        assert_eq!(ClockOffsets::of(ONE, OTHER, &[never]), None);
    }
}
