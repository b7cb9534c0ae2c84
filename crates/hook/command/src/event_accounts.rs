// SPDX-License-Identifier: Apache-2.0
use std::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::Shared;

/// What became of the events that were taken out of the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    pub written: u64,
    pub unwritten: u64,
    /// There was no file for them.
    pub unwanted: u64,
}

/// What became of all events since the hook began, kept where they outlive this process.
pub struct EventAccounts {
    shared: &'static Shared,
    before: EventCounts,
}

impl EventAccounts {
    /// Of `taken` events, those that are not counted were in the hands of a tare-hook that died:
    /// they are counted as unwritten, though it may have come to write lines of some.
    pub fn open(shared: &'static Shared, taken: u64) -> Self {
        let mut before = EventCounts {
            written: shared.written.load(Relaxed),
            unwritten: shared.unwritten.load(Relaxed),
            unwanted: shared.unwanted.load(Relaxed),
        };
        let known = [before.written, before.unwritten, before.unwanted];
        let known = known.into_iter().fold(0, u64::saturating_add);
        before.unwritten = before.unwritten.saturating_add(taken.saturating_sub(known));
        Self { shared, before }
    }

    /// Enters the counts of this session's events up to now.
    pub fn enter(&self, session: EventCounts) {
        let total = self.total(session);
        self.shared.written.store(total.written, Relaxed);
        self.shared.unwritten.store(total.unwritten, Relaxed);
        self.shared.unwanted.store(total.unwanted, Relaxed);
    }

    /// With those of the sessions before.
    pub fn total(&self, session: EventCounts) -> EventCounts {
        EventCounts {
            written: self.before.written.saturating_add(session.written),
            unwritten: self.before.unwritten.saturating_add(session.unwritten),
            unwanted: self.before.unwanted.saturating_add(session.unwanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;

    #[test]
    fn what_a_dead_session_had_in_hand_is_unwritten() {
        let shared = Segments::create().unwrap().0.shared;
        let first = EventAccounts::open(shared, 0);
        first.enter(EventCounts { written: 5, unwritten: 1, unwanted: 2 });
        let second = EventAccounts::open(shared, 11);
        let total = second.total(EventCounts { written: 1, ..EventCounts::default() });
        assert_eq!(total, EventCounts { written: 6, unwritten: 4, unwanted: 2 });
        second.enter(EventCounts::default());
        assert_eq!(
            EventAccounts::open(shared, 11).total(EventCounts::default()).unwritten,
            4,
            "counted once"
        );
    }
}
