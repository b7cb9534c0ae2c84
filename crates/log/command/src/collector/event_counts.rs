// SPDX-License-Identifier: Apache-2.0

/// What became of events.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventCounts {
    pub events: u64,
    pub lost: u64,
    /// Of those, questions of round trips that got no answer in time.
    pub unanswered: u64,
    pub unserved: u64,
    /// Events that were to be written by the program itself, and came through the ring.
    pub deferred: u64,
}

impl EventCounts {
    pub fn with(self, other: &Self) -> Self {
        Self {
            events: self.events.saturating_add(other.events),
            lost: self.lost.saturating_add(other.lost),
            unanswered: self.unanswered.saturating_add(other.unanswered),
            unserved: self.unserved.saturating_add(other.unserved),
            deferred: self.deferred.saturating_add(other.deferred),
        }
    }
}
