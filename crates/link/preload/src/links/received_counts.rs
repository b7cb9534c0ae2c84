// SPDX-License-Identifier: Apache-2.0
use crate::state;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use tare_link_segment::Counter;

/// Before these numbers are reached, nothing is told.
const CALLS: u64 = 16;
const BYTES: u64 = 16 << 10;

/// Bytes that calls have read from the ring of a link, and that the statistics do not have yet. They
/// get them when the ring is empty, while the thread waits anyway: until then, the other end waits for
/// an answer. A program that is killed in between takes some calls with it.
#[derive(Debug)]
pub struct ReceivedCounts {
    bytes: AtomicU64,
    calls: AtomicU64,
}

impl ReceivedCounts {
    pub const fn new() -> Self {
        Self { bytes: AtomicU64::new(0), calls: AtomicU64::new(0) }
    }

    /// For the thread that has the receiver's lock: no other one adds meanwhile.
    pub fn add(&self, bytes: u64) {
        let bytes = self.bytes.load(Relaxed).wrapping_add(bytes);
        let calls = self.calls.load(Relaxed).wrapping_add(1);
        self.bytes.store(bytes, Relaxed);
        self.calls.store(calls, Relaxed);
        if calls >= CALLS || bytes >= BYTES {
            self.flush();
        }
    }

    /// Under the lock, or where no call on the link goes on: when it, or the program, ends.
    pub fn flush(&self) {
        if self.calls.load(Relaxed) > 0 {
            state::count(Counter::RingReceived, self.bytes.swap(0, Relaxed));
            state::count(Counter::RingReceives, self.calls.swap(0, Relaxed));
        }
    }
}
