// SPDX-License-Identifier: Apache-2.0
#[cfg(not(loom))]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
#[cfg(loom)]
use loom::sync::atomic::AtomicU32;

/// The threads that use a place of a table, which is filled, used, closed and filled again. Stage and
/// number of users are one word: the last user of a closed place frees it, and nobody enters then.
#[derive(Debug, Default)]
pub struct ReferenceCount(AtomicU32);

const STAGE: u32 = 3 << 30;
const FREE: u32 = 0;
/// One thread has the place, to fill or to free it.
const HELD: u32 = 1 << 30;
const USED: u32 = 2 << 30;
const CLOSING: u32 = 3 << 30;

impl ReferenceCount {
    /// Of a free place.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Whether the place was free, and is the caller's to fill.
    pub fn take(&self) -> bool {
        let held = |word: u32| (word & STAGE == FREE).then_some(word + HELD);
        self.0.fetch_update(Acquire, Relaxed, held).is_ok()
    }

    /// The caller has filled the place, and is its first user.
    pub fn begin(&self) {
        // Added: other threads may be about to see that the place was free.
        self.0.fetch_add(USED - HELD + 1, Release);
    }

    /// Whether the caller may use the place. It must `leave` in any case.
    pub fn enter(&self) -> bool {
        self.0.fetch_add(1, Acquire) & STAGE == USED
    }

    pub fn is_used(&self) -> bool {
        self.0.load(Acquire) & STAGE == USED
    }

    /// A user ends. Whether the caller has to free the place.
    pub fn leave(&self) -> bool {
        self.0.fetch_sub(1, AcqRel) == CLOSING + 1
            && self.0.compare_exchange(CLOSING, HELD, Acquire, Relaxed).is_ok()
    }

    /// This number of users has ended without `leave`. For another user.
    pub fn forget(&self, number: u32) {
        self.0.fetch_sub(number, AcqRel);
    }

    /// Nobody enters any more, and the last user frees the place. For a user.
    pub fn close(&self) {
        let closing = |word: u32| (word & STAGE == USED).then_some(word | CLOSING);
        let _ = self.0.fetch_update(AcqRel, Relaxed, closing);
    }

    /// The caller has freed the place.
    pub fn free(&self) {
        self.0.fetch_sub(HELD, Release);
    }
}
