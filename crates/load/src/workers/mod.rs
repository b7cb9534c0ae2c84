// SPDX-License-Identifier: Apache-2.0
//! The threads that send. The first one leads: it asks the schedule for the next
//! slice and takes the readings, outside of the timed part.

pub mod single_user;
pub mod user_pool;

use crate::clock::{Clock, Nanoseconds};
use crate::record::readings::{Gauges, Measured, Readings};
use crate::record::sample_queue::{SampleQueue, push_or_wait};
use crate::schedule::request_limit::RequestLimit;
use crate::schedule::slices::{Done, Schedule, Slice};
use crate::stop;
use crate::target::Target;
use rtrb::Producer;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};

/// A way to put load on a target.
pub trait Sender {
    /// Makes ready for a slice that does not continue the one before it, outside of
    /// the timed part: connections above all.
    fn prepare(&mut self, slice: &Slice);

    /// Sends until the slice is over and returns its end. `start` is its start.
    fn run(&mut self, slice: &Slice, start: Nanoseconds, queue: &mut SampleQueue) -> Nanoseconds;
}

/// What every sender is told once.
#[derive(Clone)]
pub struct Settings {
    pub targets: Arc<[Target]>,
    /// A new connection for each request, whose time includes the connect.
    pub per_request: bool,
    pub timeout: Nanoseconds,
    pub request_limit: Arc<RequestLimit>,
    pub clock: Clock,
}

/// What the leader has beside what every thread has.
pub struct Leader {
    pub schedule: Box<dyn Schedule>,
    pub gauges: Gauges,
    pub measured: Producer<Measured>,
}

/// What the threads share.
pub struct Workers {
    barrier: Barrier,
    slice: Mutex<Option<Slice>>,
    start: AtomicI64,
    end: AtomicI64,
    completed: AtomicU64,
    failed: AtomicU64,
    /// A thread panicked: there is no next slice.
    broken: AtomicBool,
    clock: Clock,
}

impl Workers {
    pub fn new(threads: usize, clock: Clock) -> Self {
        Self {
            barrier: Barrier::new(threads),
            slice: Mutex::new(None),
            start: AtomicI64::new(0),
            end: AtomicI64::new(0),
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            clock,
        }
    }

    /// One thread's work, to the end of the schedule or until a stop.
    pub fn work(
        &self,
        sender: &mut dyn Sender,
        queue: &mut SampleQueue,
        mut leader: Option<Leader>,
    ) {
        let mut last: Option<Readings> = None;
        let mut panic = None;
        // The others wait for this thread at the barrier: it reaches it whatever happens.
        let mut attempt = |work: &mut dyn FnMut()| {
            if let Err(cause) = catch_unwind(AssertUnwindSafe(work)) {
                self.broken.store(true, Ordering::Release);
                panic = Some(cause);
            }
        };
        while let Some(slice) = self.next_slice(leader.as_mut()) {
            if !slice.continues {
                attempt(&mut || sender.prepare(&slice));
            }
            self.barrier.wait();
            if let Some(leader) = &mut leader {
                attempt(&mut || last = self.begin(&slice, last, leader));
            }
            self.barrier.wait();
            attempt(&mut || {
                let end = sender.run(&slice, self.start.load(Ordering::Acquire), queue);
                self.end.fetch_max(end, Ordering::AcqRel);
            });
            let (completed, failed) = queue.take_counts();
            self.completed.fetch_add(completed, Ordering::AcqRel);
            self.failed.fetch_add(failed, Ordering::AcqRel);
            self.barrier.wait();
            if let (Some(leader), Some(first)) = (&mut leader, last) {
                attempt(&mut || last = Some(self.finish(&slice, &first, leader)));
            }
        }
        if let Some(cause) = panic {
            resume_unwind(cause);
        }
    }

    /// What became of the last slice.
    fn last(&self) -> Done {
        let [start, end] = [&self.start, &self.end].map(|time| time.load(Ordering::Acquire));
        let [all, failed] = [&self.completed, &self.failed].map(|n| n.load(Ordering::Acquire));
        Done { start, succeeded: all - failed, duration: end - start }
    }

    fn next_slice(&self, leader: Option<&mut Leader>) -> Option<Slice> {
        if let Some(leader) = leader {
            let last = self.last();
            let over = stop::asked() || self.broken.load(Ordering::Acquire);
            let slice = if over { None } else { leader.schedule.next(self.clock.now(), last) };
            self.completed.store(0, Ordering::Release);
            self.failed.store(0, Ordering::Release);
            *self.slice.lock().unwrap_or_else(PoisonError::into_inner) = slice;
        }
        self.barrier.wait();
        *self.slice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The readings at the slice's start, and its start itself. A slice that
    /// continues another begins where that one ended.
    fn begin(
        &self,
        slice: &Slice,
        last: Option<Readings>,
        leader: &mut Leader,
    ) -> Option<Readings> {
        let readings = last.filter(|_| slice.continues);
        let readings = readings.or_else(|| Some(leader.gauges.read(slice.target)));
        let start =
            if slice.continues { self.end.load(Ordering::Acquire) } else { self.clock.now() };
        self.start.store(start, Ordering::Release);
        readings
    }

    fn finish(&self, slice: &Slice, first: &Readings, leader: &mut Leader) -> Readings {
        let readings = leader.gauges.read(slice.target);
        let start = self.start.load(Ordering::Acquire);
        if let Some(number) = slice.number {
            let measured = Measured {
                target: slice.target as u16,
                slice: number,
                start,
                duration: self.end.load(Ordering::Acquire) - start,
                requests: self.completed.load(Ordering::Acquire),
                increase: readings.since(first),
            };
            push_or_wait(&mut leader.measured, measured);
        }
        readings
    }
}

#[cfg(test)]
#[path = "workers_test.rs"]
mod tests;
