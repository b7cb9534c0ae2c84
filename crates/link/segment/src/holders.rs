// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};

/// The number of processes that are known at a time.
const MOST: usize = if cfg!(loom) { 3 } else { 16 };

/// The processes that have the same end of a link, by numbers that no other process has or had; 0 is
/// none. An end that was in no fork has none: one process has it.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Holders {
    list: [AtomicU64; MOST],
    /// Not 0: processes that are not in the list may have the end, too.
    are_unknown: AtomicU32,
    /// Processes that were put into the list.
    added: AtomicU32,
}

impl Holders {
    /// One more process has the end: a child that a process which has it is about to fork, or that
    /// process itself. Without a free place those are forgotten that do not live.
    pub fn add(&self, holder: u64, lives: impl Fn(u64) -> bool) {
        let is_in = |place: &AtomicU64| place.load(Relaxed) == holder;
        let put = |place: &AtomicU64| {
            let is_put = place.compare_exchange(0, holder, AcqRel, Relaxed).is_ok();
            if is_put {
                self.added.fetch_add(1, AcqRel);
            }
            is_put
        };
        if self.list.iter().any(is_in) || self.list.iter().any(put) {
            return;
        }
        self.list.iter().map(|place| place.load(Relaxed)).for_each(|other| {
            if other != 0 && !lives(other) {
                self.remove(other);
            }
        });
        if !self.list.iter().any(put) {
            self.add_unknown();
        }
    }

    /// A process has the end of which it will not be known when it ends.
    pub fn add_unknown(&self) {
        self.are_unknown.store(1, Release);
    }

    /// A process is about to close its last descriptor, or has ended.
    pub fn remove(&self, holder: u64) {
        for place in &self.list {
            let _ = place.compare_exchange(holder, 0, AcqRel, Relaxed);
        }
        // Of two processes that are removed and then look, one sees that the other was.
        fence(SeqCst);
    }

    /// Whether a process other than `own` has the end. Those that do not live are forgotten.
    pub fn has_others(&self, own: u64, lives: impl Fn(u64) -> bool) -> bool {
        /// Times that the list is read while processes are added to it.
        const TIMES: u32 = 16;
        for _ in 0..TIMES {
            let added = self.added.load(Acquire);
            if self.are_unknown.load(Acquire) != 0 || self.list_has_others(own, &lives) {
                return true;
            }
            // A child of a process that was not removed yet may be at a place that was free.
            if self.added.load(Acquire) == added {
                return false;
            }
        }
        true
    }

    fn list_has_others(&self, own: u64, lives: impl Fn(u64) -> bool) -> bool {
        self.list.iter().any(|place| {
            let holder = place.load(Acquire);
            let is_other = holder != 0 && holder != own;
            let has_ended = is_other && !lives(holder);
            if has_ended {
                self.remove(holder);
            }
            is_other && !has_ended
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn processes_have_an_end_until_they_close_it_or_end() {
        let holders = Holders::default();
        let all = |_| true;
        assert!(!holders.has_others(0, all) && !holders.has_others(7, all));
        [7, 8, 8].into_iter().for_each(|holder| holders.add(holder, all));
        assert!(holders.has_others(7, all) && holders.has_others(8, all));
        assert!(!holders.has_others(7, |holder| holder == 7));
        assert!(!holders.has_others(7, all));
        holders.add(9, all);
        holders.remove(7);
        assert!(holders.has_others(7, all) && !holders.has_others(9, all));
    }

    #[test]
    fn places_of_processes_that_have_ended_are_used_again() {
        let holders = Holders::default();
        (1..100).for_each(|holder| holders.add(holder, |other| other == 1));
        assert!(!holders.has_others(1, |holder| holder == 1));
        (100..100 + MOST as u64).for_each(|holder| holders.add(holder, |_| true));
        assert!(holders.has_others(1, |_| false), "one of them is not known");
    }
}
