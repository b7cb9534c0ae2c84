// SPDX-License-Identifier: Apache-2.0
//! Locks in shared memory, which hold the number of a thread. Threads of one end take the sender's
//! lock; both ends take the receiver's, and the sender marks its numbers there, since each PID
//! namespace has its own.

use crate::slots::Slot;
use crate::{kernel, state};
use core::sync::atomic::Ordering::Relaxed;
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

/// In the receiver's lock: the number is of a thread of the sender's.
const SENDER: u32 = 1 << 31;

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

/// The receiver's lock of what this end receives, as `take`.
pub fn take_to_receive(slot: &Slot) -> Held {
    loop {
        if let Some(held) = take_soon_to_receive(slot) {
            return held;
        }
    }
}

/// As `take_soon`.
pub fn take_soon_to_receive(slot: &Slot) -> Option<Held> {
    let lives = |owner: u32| match owner & SENDER {
        0 => kernel::exists(owner),
        _ => other_lives(slot, owner & !SENDER),
    };
    soon(slot.parts().incoming.receiver_lock(), state::thread_number(), &lives)
}

/// The receiver's lock of what this end sends, as `take_soon`.
pub fn take_soon_to_send(slot: &Slot) -> Option<Held> {
    let lock = slot.parts().outgoing.receiver_lock();
    let lives = |owner: u32| match owner & SENDER {
        0 => other_lives(slot, owner),
        _ => kernel::exists(owner & !SENDER),
    };
    soon(lock, state::thread_number() | SENDER, &lives)
}

/// The receiver's lock of what this end sends, if it is free.
pub fn try_take_to_send(slot: &Slot) -> Option<Held> {
    at_once(slot.parts().outgoing.receiver_lock(), state::thread_number() | SENDER)
}

pub fn release(lock: &Lock, held: Held) {
    if held.taken == Taken::Now {
        lock.release(held.thread);
    }
}

fn soon(lock: &Lock, thread: u32, lives: &dyn Fn(u32) -> bool) -> Option<Held> {
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
                if times < SPINS {
                    core::hint::spin_loop();
                } else if times < YIELDS {
                    kernel::yield_now();
                } else {
                    kernel::sleep(200);
                    if times.is_multiple_of(64) && !lives(owner) && lock.take_from(owner, thread) {
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

fn at_once(lock: &Lock, thread: u32) -> Option<Held> {
    match lock.try_take(thread) {
        Taken::Now => Some(Held { thread, taken: Taken::Now }),
        _ => None,
    }
}

/// Whether a thread of the other end can still release a lock. In another PID namespace its number
/// says nothing; but a program that has ended has no connection any more.
fn other_lives(slot: &Slot, thread: u32) -> bool {
    const GONE: i16 = libc::POLLRDHUP | libc::POLLERR | libc::POLLHUP;
    let namespaces = slot.parts().link.namespaces();
    let [own, other] = namespaces.map_or([0, 0], |both| both.map(|one| one.load(Relaxed)));
    if own != 0 && own == other {
        return kernel::exists(thread);
    }
    slot.any_descriptor().is_some_and(|fd| kernel::events(fd, libc::POLLRDHUP) & GONE == 0)
}
