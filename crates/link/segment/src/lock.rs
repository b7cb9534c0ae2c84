// SPDX-License-Identifier: Apache-2.0
#[cfg(not(loom))]
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
#[cfg(loom)]
use loom::sync::atomic::AtomicU32;

/// Lets one thread at a time, of all processes that share an end of a link, work on a direction.
/// Holds the number of its thread, 0 if it is free. Numbers of both ends must differ.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Lock(AtomicU32);

/// How a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// By this call, which has to release it.
    Now,
    /// By the same thread before: this is a signal handler, or the thread left by a long jump.
    Before,
    /// By the other thread with this number.
    ByOther(u32),
}

impl Lock {
    /// A free one.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub fn try_take(&self, thread: u32) -> Taken {
        match self.0.compare_exchange(0, thread, Acquire, Relaxed) {
            Ok(_) => Taken::Now,
            Err(owner) if owner == thread => Taken::Before,
            Err(owner) => Taken::ByOther(owner),
        }
    }

    /// Whether this thread has it.
    pub fn is_of(&self, thread: u32) -> bool {
        self.0.load(Relaxed) == thread
    }

    /// Takes the lock of a thread that has ended.
    pub fn take_from(&self, owner: u32, thread: u32) -> bool {
        self.0.compare_exchange(owner, thread, Acquire, Relaxed).is_ok()
    }

    /// In the child of a fork, of a lock that is not shared: its owner is a thread of the parent.
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// After `Taken::Now`. Nobody takes it from a thread that lives, so no exchange is needed: a store
    /// does not wait for other lines of the cache.
    pub fn release(&self, thread: u32) {
        if self.is_of(thread) {
            self.0.store(0, Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_has_it_and_knows_that_it_has() {
        let lock = Lock::default();
        assert_eq!(lock.try_take(7), Taken::Now);
        assert_eq!(lock.try_take(7), Taken::Before);
        assert!(lock.is_of(7) && !lock.is_of(8));
        assert_eq!(lock.try_take(8), Taken::ByOther(7));
        lock.release(8);
        assert_eq!(lock.try_take(8), Taken::ByOther(7));
        lock.release(7);
        assert_eq!(lock.try_take(8), Taken::Now);
        assert!(!lock.take_from(7, 9) && lock.take_from(8, 9));
        assert_eq!(lock.try_take(9), Taken::Before);
    }
}
