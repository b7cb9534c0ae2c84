// SPDX-License-Identifier: Apache-2.0
use super::sample::Sample;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::time::Duration;

/// Samples that wait for the recorder: more than a second of them at any rate that
/// one thread reaches.
const CAPACITY: usize = 1 << 17;

/// Where a thread leaves its samples: a ring in memory, emptied by the recorder.
/// Leaving one neither allocates nor makes a system call.
pub struct SampleQueue {
    ring: Producer<Sample>,
    completed: u64,
    failed: u64,
}

impl SampleQueue {
    pub fn new() -> (Self, Consumer<Sample>) {
        let (ring, recorder) = RingBuffer::new(CAPACITY);
        (Self { ring, completed: 0, failed: 0 }, recorder)
    }

    /// Leaves a sample; one of the warm-up is only counted. A ring that is full,
    /// since the disk is slower than the load, holds the load up between requests:
    /// nothing is dropped.
    #[inline]
    pub fn push(&mut self, sample: Sample, recorded: bool) {
        self.completed += 1;
        self.failed += u64::from(sample.outcome.error.is_some());
        if !recorded {
            return;
        }
        push_or_wait(&mut self.ring, sample);
    }

    /// Requests completed, and those of them that failed, since this was last asked.
    pub fn take_counts(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.completed), std::mem::take(&mut self.failed))
    }
}

/// Leaves something for the recorder, once there is room for it.
#[inline]
pub fn push_or_wait<T>(ring: &mut Producer<T>, mut item: T) {
    while let Err(PushError::Full(back)) = ring.push(item) {
        if ring.is_abandoned() {
            return;
        }
        item = back;
        std::thread::sleep(Duration::from_millis(1));
    }
}
