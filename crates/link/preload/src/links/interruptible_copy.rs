// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, compiler_fence};

/// The copy to the ring that a thread makes under the sender's lock. A signal handler that interrupts
/// it and sends must not write to the ring: the copy, which goes on then, would overwrite that. So the
/// handler takes the stream back to TCP, and the copy is invalid.
#[derive(Debug)]
pub struct InterruptibleCopy {
    stage: AtomicU32,
    /// Where the ring's bytes ended when the copy became invalid.
    head: AtomicU64,
}

const NONE: u32 = 0;
const COPYING: u32 = 1;
const INVALID: u32 = 2;

impl InterruptibleCopy {
    pub const fn new() -> Self {
        Self { stage: AtomicU32::new(NONE), head: AtomicU64::new(0) }
    }

    /// Before the thread asks whether it may write to the ring, and where.
    pub fn begin(&self) {
        self.stage.store(COPYING, Relaxed);
        compiler_fence(SeqCst);
    }

    pub fn end(&self) {
        compiler_fence(SeqCst);
        self.stage.store(NONE, Relaxed);
    }

    pub fn is_in_progress(&self) -> bool {
        self.stage.load(Relaxed) == COPYING
    }

    /// Just before the stream goes to TCP.
    pub fn invalidate(&self, head: u64) {
        if self.is_in_progress() {
            self.head.store(head, Relaxed);
            self.stage.store(INVALID, Relaxed);
        }
    }

    /// Whether the stream has gone to TCP since `begin`: where the ring's bytes ended then.
    pub fn invalidated_at(&self) -> Option<u64> {
        compiler_fence(SeqCst);
        (self.stage.load(Relaxed) == INVALID).then(|| self.head.load(Relaxed))
    }
}
