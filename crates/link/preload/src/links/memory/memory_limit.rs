// SPDX-License-Identifier: Apache-2.0
//! The memory that the links of this process may have together (`--memory`): their counters, and the
//! pages of the rings that it has written to; the peers count the other rings. A ring that grows counts
//! with all of its bytes. When it was idle for a second, its memory goes back to the kernel, and it is
//! as small as at first.

use crate::links::service_socket;
use crate::state;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

static USED: AtomicU64 = AtomicU64::new(0);
/// Whether the service thread checks the rings (`idle_rings`).
pub(super) static IS_ANY_IN_USE: AtomicBool = AtomicBool::new(false);

/// What the ring of a link's outgoing stream has.
#[derive(Debug)]
pub struct MemoryCharge {
    /// `NONE`, `WRITTEN` since the last look, or `IDLE`.
    pub(super) stage: AtomicU32,
    bytes: AtomicU64,
    /// The stream's place up to which the bytes are; `WHOLE_RING` if the whole ring counts.
    end: AtomicU64,
}

const PAGE: u64 = 4096;
/// Of a link's counters.
const COUNTERS: u64 = PAGE;
const WHOLE_RING: u64 = u64::MAX;

pub(super) const NONE: u32 = 0;
pub(super) const WRITTEN: u32 = 1;
pub(super) const IDLE: u32 = 2;

impl MemoryCharge {
    pub const fn new() -> Self {
        Self { stage: AtomicU32::new(NONE), bytes: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// For a new link.
    pub fn begin(&self) {
        self.stage.store(NONE, Relaxed);
        self.bytes.store(0, Relaxed);
        self.end.store(0, Relaxed);
        USED.fetch_add(COUNTERS, Relaxed);
    }

    /// The link has ended.
    pub fn uncharge_all(&self) {
        self.uncharge();
        USED.fetch_sub(COUNTERS, Relaxed);
    }

    /// Before the sender writes to the ring at this place: whether that may have memory. Under the
    /// sender's lock.
    #[inline]
    pub fn try_charge(&self, place: u64, capacity: u64) -> bool {
        self.stage.load(Relaxed) == WRITTEN && place < self.end.load(Relaxed)
            || self.charge(place, capacity)
    }

    /// How many of these bytes may have memory. After `try_charge`.
    #[inline]
    pub fn try_charge_part(&self, place: u64, length: u64, capacity: u64) -> u64 {
        let left = self.end.load(Relaxed).saturating_sub(place);
        if length <= left || self.extend(place, length, capacity) { length } else { left }
    }

    #[cold]
    #[inline(never)]
    fn charge(&self, place: u64, capacity: u64) -> bool {
        if place >= self.end.load(Relaxed) && !self.extend(place, 1, capacity) {
            return false;
        }
        self.stage.store(WRITTEN, SeqCst);
        if !IS_ANY_IN_USE.swap(true, SeqCst) {
            service_socket::wake_own();
        }
        true
    }

    /// Counts the pages of these bytes.
    #[cold]
    #[inline(never)]
    fn extend(&self, place: u64, length: u64, capacity: u64) -> bool {
        let begin = self.end.load(Relaxed).max(place & !(PAGE - 1));
        let end = place.saturating_add(length).saturating_add(PAGE - 1) & !(PAGE - 1);
        let left = capacity.saturating_sub(self.bytes.load(Relaxed));
        let more = end.saturating_sub(begin).min(left);
        let is_free = self.charge_bytes(more);
        if is_free {
            self.end.store(if more == left { WHOLE_RING } else { end }, Relaxed);
        }
        is_free
    }

    /// Whether the whole ring may have memory.
    pub fn try_charge_all(&self, capacity: u64) -> bool {
        let is_free = self.charge_bytes(capacity.saturating_sub(self.bytes.load(Relaxed)));
        if is_free {
            self.end.store(WHOLE_RING, Relaxed);
        }
        is_free
    }

    fn charge_bytes(&self, more: u64) -> bool {
        let sum = |used: u64| used.checked_add(more).filter(|used| *used <= limit());
        let is_free = USED.fetch_update(Relaxed, Relaxed, sum).is_ok();
        if is_free {
            self.bytes.fetch_add(more, Relaxed);
        }
        is_free
    }

    /// The ring has no memory any more.
    pub fn uncharge(&self) {
        self.stage.store(NONE, Relaxed);
        self.end.store(0, Relaxed);
        USED.fetch_sub(self.bytes.swap(0, Relaxed), Relaxed);
    }
}

fn limit() -> u64 {
    state::statistics().map_or(0, |statistics| statistics.settings().memory_limit())
}

/// Whether there is room for this number of bytes.
pub fn has_room(bytes: u64) -> bool {
    USED.load(Relaxed).saturating_add(bytes) <= limit()
}
