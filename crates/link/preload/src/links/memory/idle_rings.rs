// SPDX-License-Identifier: Apache-2.0
//! Gives the memory of idle rings back to the kernel, for the service thread.

use crate::kernel;
use crate::links::memory::memory_limit::{IDLE, IS_ANY_IN_USE, NONE, WRITTEN};
use crate::links::receiver_lock;
use crate::links::slots::{self, DirectionIndex, Slot};
use crate::state::lock;
use core::sync::atomic::AtomicI64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use tare_shm::memory;

/// Milliseconds between two checks of the rings.
const INTERVAL: i64 = 1000;
/// When the rings were last checked.
static LAST_CHECK: AtomicI64 = AtomicI64::new(0);

/// Checks all rings, if that is due. Returns after how many milliseconds it is due again, `None` if
/// no ring has memory.
pub fn reclaim() -> Option<i64> {
    if !IS_ANY_IN_USE.load(Acquire) {
        return None;
    }
    let now = kernel::now();
    let since = now - LAST_CHECK.load(Relaxed);
    if (0..INTERVAL).contains(&since) {
        return Some(INTERVAL - since);
    }
    LAST_CHECK.store(now, Relaxed);
    // Either a sender that gets memory from here on wakes this thread, or this check finds it.
    IS_ANY_IN_USE.swap(false, SeqCst);
    let mut is_any = false;
    slots::each(|slot| is_any |= keeps_memory(slot));
    if is_any {
        IS_ANY_IN_USE.store(true, SeqCst);
    }
    is_any.then_some(INTERVAL)
}

fn keeps_memory(slot: &Slot) -> bool {
    let stage = &slot.memory.stage;
    match stage.load(SeqCst) {
        NONE => return false,
        WRITTEN => stage.store(IDLE, Relaxed),
        _ => return !reclaim_ring(slot),
    }
    true
}

/// Gives the memory of an empty ring back. False if it is in use.
fn reclaim_ring(slot: &Slot) -> bool {
    let outgoing = slot.mapping().outgoing;
    let Some(held) = lock::try_take(outgoing.sender_lock()) else { return false };
    let received = receiver_lock::try_take_to_send(slot);
    let mut is_done = false;
    if let Some(received) = received {
        let ring = slot.ring(DirectionIndex::Outgoing, outgoing.capacity());
        is_done = outgoing.backlog().is_none() && ring.is_some() && outgoing.shrink();
        if let Some(ring) = ring.filter(|_| is_done) {
            // SAFETY: the ring is empty, and both locks are held.
            unsafe { memory::give_back(ring.as_ptr().cast_mut().cast(), ring.len()) };
            slot.memory.uncharge();
            slot.wants_room.store(0, Relaxed);
        }
        lock::release(outgoing.receiver_lock(), received);
    }
    lock::release(outgoing.sender_lock(), held);
    is_done
}
