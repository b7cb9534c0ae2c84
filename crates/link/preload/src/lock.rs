// SPDX-License-Identifier: Apache-2.0
use crate::{kernel, state};
use tare_link_segment::{Lock, Taken};

/// A lock that this thread has. Released by hand: no value with a destructor may be alive in a call
/// that pthread_cancel ends.
#[must_use]
pub struct Held {
    thread: u32,
    taken: Taken,
}

const SPINS: u32 = 200;
const YIELDS: u32 = 1000;

/// Waits for a lock, and takes it from a thread that has ended.
pub fn take(lock: &Lock) -> Held {
    loop {
        if let Some(held) = take_soon(lock) {
            return held;
        }
    }
}

/// As `take`, but waits no longer than some ten milliseconds: the owner may have been stopped.
pub fn take_soon(lock: &Lock) -> Option<Held> {
    const TIMES: u32 = YIELDS + 64;
    let thread = state::thread_number();
    let mut times = 0u32;
    loop {
        match lock.try_take(thread) {
            Taken::ByOther(owner) => {
                times = times.saturating_add(1);
                if times < SPINS {
                    core::hint::spin_loop();
                } else if times < YIELDS {
                    kernel::yield_now();
                } else {
                    kernel::sleep(200);
                    if times.is_multiple_of(64)
                        && !kernel::exists(owner)
                        && lock.take_from(owner, thread)
                    {
                        return Some(Held { thread, taken: Taken::Now });
                    }
                    if times > TIMES {
                        return None;
                    }
                }
            }
            taken => return Some(Held { thread, taken }),
        }
    }
}

/// Takes a lock that is free.
pub fn try_take(lock: &Lock) -> Option<Held> {
    let thread = state::thread_number();
    match lock.try_take(thread) {
        Taken::Now => Some(Held { thread, taken: Taken::Now }),
        _ => None,
    }
}

pub fn release(lock: &Lock, held: Held) {
    if held.taken == Taken::Now {
        lock.release(held.thread);
    }
}
