// SPDX-License-Identifier: Apache-2.0
//! The memory that the rings of this process may have together (`--memory`). Only the rings that it
//! writes count: the peers count the others. A ring has all of its bytes from a message on until it
//! was silent for a second. Then its memory goes back to the kernel, and it is as small as at first.

use crate::links::service_socket;
use crate::state;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

static USED: AtomicU64 = AtomicU64::new(0);
/// Whether the service thread looks at the rings (`silent_rings`).
pub(super) static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// What the ring of a link's outgoing stream has.
#[derive(Debug)]
pub struct Memory {
    /// `NONE`, `WRITTEN` since the last look, or `SILENT`.
    pub(super) stage: AtomicU32,
    bytes: AtomicU64,
}

pub(super) const NONE: u32 = 0;
pub(super) const WRITTEN: u32 = 1;
pub(super) const SILENT: u32 = 2;

impl Memory {
    pub const fn new() -> Self {
        Self { stage: AtomicU32::new(NONE), bytes: AtomicU64::new(0) }
    }

    /// For a new link.
    pub fn begin(&self) {
        self.stage.store(NONE, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    /// Before the sender writes to the ring: whether that may have memory. Under the sender's lock.
    #[inline]
    pub fn is_there(&self, capacity: u64) -> bool {
        self.stage.load(Relaxed) == WRITTEN || self.get(capacity)
    }

    #[cold]
    fn get(&self, capacity: u64) -> bool {
        if self.stage.load(Relaxed) == NONE && !self.grow(capacity) {
            return false;
        }
        self.stage.store(WRITTEN, SeqCst);
        if !IS_WATCHED.swap(true, SeqCst) {
            service_socket::wake_own();
        }
        true
    }

    /// Whether the ring may have this number of bytes more.
    pub fn grow(&self, more: u64) -> bool {
        let sum = |used: u64| used.checked_add(more).filter(|used| *used <= most());
        let is_free = USED.fetch_update(Relaxed, Relaxed, sum).is_ok();
        if is_free {
            self.bytes.fetch_add(more, Relaxed);
        }
        is_free
    }

    /// The ring has no memory any more.
    pub fn end(&self) {
        self.stage.store(NONE, Relaxed);
        USED.fetch_sub(self.bytes.swap(0, Relaxed), Relaxed);
    }
}

fn most() -> u64 {
    state::statistics().map_or(0, |statistics| statistics.choice().memory())
}

/// Whether there is room for this number of bytes.
pub fn has_room(bytes: u64) -> bool {
    USED.load(Relaxed).saturating_add(bytes) <= most()
}
