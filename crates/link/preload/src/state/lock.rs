// SPDX-License-Identifier: Apache-2.0
//! Locks in shared memory, which hold the number of a thread.

use crate::{kernel, state};
use tare_link_segment::{Lock, Taken};

/// A lock that this thread has. Released by hand: no value with a destructor may be alive in a call
/// that pthread_cancel ends.
#[must_use]
pub struct Held {
    thread: u32,
    taken: Taken,
}

impl Held {
    /// Whether this is a signal handler, and the call that it has interrupted took the lock.
    pub fn is_interrupting(&self) -> bool {
        self.taken == Taken::Before
    }
}

const SPINS: u32 = 200;
const YIELDS: u32 = 1000;

/// Waits for a lock that only this end takes, and takes it from a thread that has ended.
pub fn take(lock: &Lock) -> Held {
    loop {
        if let Some(held) = take_soon(lock) {
            return held;
        }
    }
}

/// As `take`, but waits no longer than some ten milliseconds: the owner may have been stopped.
pub fn take_soon(lock: &Lock) -> Option<Held> {
    soon(lock, state::thread_number(), &kernel::exists)
}

/// Takes a lock that is free and that only this end takes.
pub fn try_take(lock: &Lock) -> Option<Held> {
    at_once(lock, state::thread_number())
}

pub fn release(lock: &Lock, held: Held) {
    if held.taken == Taken::Now {
        lock.release(held.thread);
    }
}

/// As `take_soon`, for a thread with this number; `lives` says whether an owner can still release it.
pub fn soon(lock: &Lock, thread: u32, lives: &dyn Fn(u32) -> bool) -> Option<Held> {
    match lock.try_take(thread) {
        Taken::ByOther(_) => contended(lock, thread, lives),
        taken => Some(Held { thread, taken }),
    }
}

#[cold]
#[inline(never)]
fn contended(lock: &Lock, thread: u32, lives: &dyn Fn(u32) -> bool) -> Option<Held> {
    const TIMES: u32 = YIELDS + 64;
    let mut times = 0u32;
    loop {
        match lock.try_take(thread) {
            Taken::ByOther(owner) => {
                times = times.saturating_add(1);
                // A survivor is to see the end of a killed process soon.
                if times >= SPINS
                    && times.is_multiple_of(8)
                    && !lives(owner)
                    && lock.take_from(owner, thread)
                {
                    return Some(Held { thread, taken: Taken::Now });
                }
                if times < SPINS {
                    core::hint::spin_loop();
                } else if times < YIELDS {
                    kernel::yield_now();
                } else {
                    kernel::sleep(200);
                    if times > TIMES {
                        return None;
                    }
                }
            }
            taken => return Some(Held { thread, taken }),
        }
    }
}

/// As `try_take`, for a thread with this number.
pub fn at_once(lock: &Lock, thread: u32) -> Option<Held> {
    match lock.try_take(thread) {
        Taken::Now => Some(Held { thread, taken: Taken::Now }),
        _ => None,
    }
}
