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
}

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

    pub fn keep(&self, writer: Option<&'static Writer>, author: u32) {
        let writer = writer.map_or(ptr::null_mut(), |writer| ptr::from_ref(writer).cast_mut());
        self.writer.store(writer, Relaxed);
        self.author.store(author, Relaxed);
    }
}
