// SPDX-License-Identifier: Apache-2.0
use std::sync::atomic::Ordering::Relaxed;
use tare_hook_segment::Shared;

/// What became of the events that were taken out of the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    pub written: u64,
    pub unwritten: u64,
    /// There was no file for them.
    pub unwanted: u64,
}

/// The fates of all events since the hook began, kept where they outlive this process.
pub struct Ledger {
    shared: &'static Shared,
    before: Fates,
}

impl Ledger {
    /// Of `taken` events, those that have no fate were in the hands of a tare-hook that died:
    /// they are counted as unwritten, though it may have come to write lines of some.
    pub fn open(shared: &'static Shared, taken: u64) -> Self {
        let mut before = Fates {
            written: shared.written.load(Relaxed),
            unwritten: shared.unwritten.load(Relaxed),
            unwanted: shared.unwanted.load(Relaxed),
        };
        let known = [before.written, before.unwritten, before.unwanted];
        let known = known.into_iter().fold(0, u64::saturating_add);
        before.unwritten = before.unwritten.saturating_add(taken.saturating_sub(known));
        Self { shared, before }
    }

    /// Enters the fates of this session's events up to now.
    pub fn enter(&self, session: Fates) {
        let total = self.total(session);
        self.shared.written.store(total.written, Relaxed);
        self.shared.unwritten.store(total.unwritten, Relaxed);
        self.shared.unwanted.store(total.unwanted, Relaxed);
    }

    /// With those of the sessions before.
    pub fn total(&self, session: Fates) -> Fates {
        Fates {
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
        let first = Ledger::open(shared, 0);
        first.enter(Fates { written: 5, unwritten: 1, unwanted: 2 });
        let second = Ledger::open(shared, 11);
        let total = second.total(Fates { written: 1, ..Fates::default() });
        assert_eq!(total, Fates { written: 6, unwritten: 4, unwanted: 2 });
        second.enter(Fates::default());
        assert_eq!(Ledger::open(shared, 11).total(Fates::default()).unwritten, 4, "counted once");
    }
}
