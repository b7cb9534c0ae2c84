// SPDX-License-Identifier: Apache-2.0
use crate::procfs;
use std::sync::atomic::Ordering::Relaxed;
use tare_clock::{Source, ordered_ticks};
use tare_log_segment::Process;

/// The clock that a program takes the times of its events from.
#[derive(Clone, Copy, Debug)]
pub struct EventClock {
    pub source: Source,
    /// How far the clocks of its time namespace are ahead of those here.
    pub ahead_ns: i64,
    /// The newest that is known of a clock that is not here: of memory that was copied, nobody
    /// knows where.
    pub newest: Option<u64>,
}

impl EventClock {
    pub fn of(process: &Process, pid: u32, is_copy: bool) -> Self {
        let source = Source::numbered(process.clock.load(Relaxed));
        let newest = is_copy.then(|| process.first.ticks.load(Relaxed));
        Self { source, ahead_ns: procfs::ahead_ns(pid), newest }
    }

    /// Something was at this time.
    pub fn learn(&mut self, ticks: u64) {
        self.newest = self.newest.map(|newest| newest.max(ticks));
    }

    /// The time of an event that comes now, after all that was read before.
    pub fn now(self) -> u64 {
        if let Some(newest) = self.newest {
            return newest;
        }
        if self.source.counts_ticks() {
            return ordered_ticks();
        }
        self.source.now().wrapping_add_signed(self.ahead_ns)
    }
}
