// SPDX-License-Identifier: Apache-2.0
//! The memory that the rings of this process may have together (`--memory`): those of what it sends,
//! since each ring is written by one end. A ring has all of its bytes from a message on until it was
//! silent for a second. Then its memory goes back to the kernel, and it is as small as at first.

use crate::slots::{self, Slot, Way};
use crate::{kernel, lock, service_thread, state};
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};
use tare_shm::memory;

/// Milliseconds between two looks at the rings.
const OFTEN: i64 = 1000;

static USED: AtomicU64 = AtomicU64::new(0);
/// Whether the service thread looks at the rings, and when it last did.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
static LOOKED: AtomicI64 = AtomicI64::new(0);

/// What the ring of a link's outgoing stream has.
#[derive(Debug)]
pub struct Memory {
    /// `NONE`, `WRITTEN` since the last look, or `SILENT`.
    stage: AtomicU32,
    bytes: AtomicU64,
}

const NONE: u32 = 0;
const WRITTEN: u32 = 1;
const SILENT: u32 = 2;

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
            service_thread::wake_own();
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

/// Looks at all rings, if that is due. Returns after how many milliseconds it is due again, `None` if
/// no ring has memory. For the service thread.
pub fn look() -> Option<i64> {
    if !IS_WATCHED.load(Acquire) {
        return None;
    }
    let now = kernel::now();
    let since = now - LOOKED.load(Relaxed);
    if (0..OFTEN).contains(&since) {
        return Some(OFTEN - since);
    }
    LOOKED.store(now, Relaxed);
    // Either a sender that gets memory from here on wakes this thread, or this look finds it.
    IS_WATCHED.swap(false, SeqCst);
    let mut is_any = false;
    slots::each(|slot| is_any |= keeps_memory(slot));
    if is_any {
        IS_WATCHED.store(true, SeqCst);
    }
    is_any.then_some(OFTEN)
}

fn keeps_memory(slot: &Slot) -> bool {
    let stage = &slot.memory.stage;
    match stage.load(SeqCst) {
        NONE => return false,
        WRITTEN => stage.store(SILENT, Relaxed),
        _ => return !give_back(slot),
    }
    true
}

/// Gives the memory of an empty ring back. False if it is in use.
fn give_back(slot: &Slot) -> bool {
    let outgoing = slot.parts().outgoing;
    let Some(held) = lock::try_take(outgoing.sender_lock()) else { return false };
    let received = lock::try_take_to_send(slot);
    let mut is_done = false;
    if let Some(received) = received {
        let ring = slot.ring(Way::Outgoing, outgoing.capacity());
        is_done = outgoing.backlog().is_none() && ring.is_some() && outgoing.shrink();
        if let Some(ring) = ring.filter(|_| is_done) {
            // SAFETY: the ring is empty, and both locks are held.
            unsafe { memory::give_back(ring.as_ptr().cast_mut().cast(), ring.len()) };
            slot.memory.end();
            slot.wants_room.store(0, Relaxed);
        }
        lock::release(outgoing.receiver_lock(), received);
    }
    lock::release(outgoing.sender_lock(), held);
    is_done
}
