// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use tare_interpose::{ThreadBlock, ThreadState};

pub type Thread = ThreadBlock<State>;

/// What the hook keeps of a thread.
#[derive(Debug)]
pub struct State {
    /// 1 + the place of the ring that the thread owns, 0 for none.
    pub claim: AtomicU32,
    /// Ticks that the last call that was timed spent before the real call.
    pub before: AtomicU32,
    /// Calls until the next that is timed so.
    pub untimed: AtomicU32,
    /// Not 0 while the thread records, where it cannot hold signals.
    pub recording: AtomicU32,
    /// Not 0 while the thread searches, or if a signal handler left a search by a jump.
    pub searching: AtomicU32,
}

// SAFETY: atomics only.
unsafe impl ThreadState for State {
    /// The ring is the parent's.
    fn forked(&self) {
        self.claim.store(0, Relaxed);
    }
}
