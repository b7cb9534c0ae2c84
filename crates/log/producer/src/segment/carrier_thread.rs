// SPDX-License-Identifier: Apache-2.0
//! What is known of a thread of the kernel: its writer, and which virtual thread of Java on it
//! wrote the last events in its ring.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32};
use tare_log_segment::Writer;
use tare_shm::per_thread;

/// Memory of each thread, zero in a new one.
#[repr(C, align(16))]
pub struct Carrier {
    writer: AtomicPtr<Writer>,
    /// The number of a virtual thread, which is not 0.
    author: AtomicU32,
    /// The process in which the thread has found no ring, how many of its events are counted
    /// as lost before it looks again, and how many have been.
    poor_in: AtomicU32,
    pause: AtomicU32,
    paused: AtomicU32,
}

/// Events of a thread without a ring between two looks for one: a look takes as long as thousands of
/// events.
const FIRST_PAUSE: u32 = 64;
const LONGEST_PAUSE: u32 = 4096;

per_thread! {
    fn carrier() -> *const Carrier = "tare_log_carrier";
}

impl Carrier {
    /// That of the calling thread.
    pub fn this() -> &'static Self {
        // SAFETY: it lives as long as the thread, and is atomics alone.
        unsafe { &*carrier() }
    }

    pub fn author(&self) -> u32 {
        self.author.load(Relaxed)
    }

    /// The writer of this thread, if it has a ring: in the child of a fork it has none.
    pub fn writer(&self) -> Option<&'static Writer> {
        // SAFETY: null, or a writer, which is never unmapped.
        unsafe { self.writer.load(Relaxed).as_ref() }.filter(|writer| writer.ring().is_some())
    }

    /// Whether the thread, which has no ring, may look for one.
    pub fn may_claim(&self, pid: u32) -> bool {
        self.poor_in.load(Relaxed) != pid
            || self.paused.fetch_add(1, Relaxed) >= self.pause.load(Relaxed)
    }

    /// It has found none.
    pub fn pause_claims(&self, pid: u32) {
        let before =
            if self.poor_in.swap(pid, Relaxed) == pid { self.pause.load(Relaxed) } else { 0 };
        self.pause.store((2 * before).clamp(FIRST_PAUSE, LONGEST_PAUSE), Relaxed);
        self.paused.store(0, Relaxed);
    }

    pub fn keep(&self, writer: Option<&'static Writer>, author: u32) {
        let writer = writer.map_or(ptr::null_mut(), |writer| ptr::from_ref(writer).cast_mut());
        self.writer.store(writer, Relaxed);
        self.author.store(author, Relaxed);
    }
}
