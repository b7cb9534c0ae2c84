// SPDX-License-Identifier: Apache-2.0
//! The lock of a direction's receiver. Both ends take it, and the sender marks its numbers there, since
//! each PID namespace has its own. The sender's lock is taken by threads of one end only.

use crate::links::slots::{DirectionIndex, Slot};
use crate::state::lock::{self, Held};
use crate::{kernel, state};
use core::sync::atomic::Ordering::Relaxed;

/// The number is of a thread of the sender's.
const SENDER: u32 = 1 << 31;

/// The lock of what this end receives, as `lock::take`. `None` if its thread waits for bytes, in a
/// signal handler: it may wait for what the calling thread does.
pub fn take_to_receive(slot: &Slot) -> Option<Held> {
    loop {
        let held = take_soon_to_receive(slot);
        if held.is_some() || slot.is_held_in_wait(DirectionIndex::Incoming) {
            return held;
        }
    }
}

/// Does something under the lock of what this end receives, as `take_to_receive`.
pub fn while_receiving<T>(slot: &Slot, what: impl FnOnce() -> T) -> Option<T> {
    let held = take_to_receive(slot)?;
    let done = what();
    lock::release(slot.mapping().incoming.receiver_lock(), held);
    Some(done)
}

/// As `lock::take_soon`.
pub fn take_soon_to_receive(slot: &Slot) -> Option<Held> {
    let lives = |owner: u32| match owner & SENDER {
        0 => kernel::exists(owner),
        _ => other_lives(slot, owner & !SENDER),
    };
    lock::soon(slot.mapping().incoming.receiver_lock(), state::thread_number(), &lives)
}

/// The lock of what this end sends, as `lock::take_soon`.
pub fn take_soon_to_send(slot: &Slot) -> Option<Held> {
    let lock = slot.mapping().outgoing.receiver_lock();
    let lives = |owner: u32| match owner & SENDER {
        0 => other_lives(slot, owner),
        _ => kernel::exists(owner & !SENDER),
    };
    lock::soon(lock, state::thread_number() | SENDER, &lives)
}

/// The lock of what this end sends, if it is free.
pub fn try_take_to_send(slot: &Slot) -> Option<Held> {
    lock::at_once(slot.mapping().outgoing.receiver_lock(), state::thread_number() | SENDER)
}

/// Whether a thread of the other end can still release a lock. In another PID namespace its number
/// says nothing; but a program that has ended has no connection any more.
fn other_lives(slot: &Slot, thread: u32) -> bool {
    let namespaces = slot.mapping().link.namespaces();
    let [own, other] =
        namespaces.map_or([0, 0], |both| both.map(|namespace| namespace.load(Relaxed)));
    if own != 0 && own == other {
        return kernel::exists(thread);
    }
    slot.any_descriptor().is_some_and(|fd| !kernel::has_ended(fd))
}
