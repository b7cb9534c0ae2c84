// SPDX-License-Identifier: Apache-2.0
//! Gives the memory of silent rings back to the kernel, for the service thread.

use crate::kernel;
use crate::links::memory_limit::{IS_WATCHED, NONE, SILENT, WRITTEN};
use crate::links::receiver_lock;
use crate::links::slots::{self, Slot, Way};
use crate::state::lock;
use core::sync::atomic::AtomicI64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use tare_shm::memory;

/// Milliseconds between two looks at the rings.
const OFTEN: i64 = 1000;
/// When the rings were last looked at.
static LOOKED: AtomicI64 = AtomicI64::new(0);

/// Looks at all rings, if that is due. Returns after how many milliseconds it is due again, `None` if
/// no ring has memory.
pub fn look() -> Option<i64> {
    if !IS_WATCHED.load(Acquire) {
        return None;
    }
    let now = kernel::now();
    let since = now - LOOKED.load(Relaxed);
    if (0..OFTEN).contains(&since) {
        return Some(OFTEN - since);
    }
    LOOKED.store(now, Relaxed);
    // Either a sender that gets memory from here on wakes this thread, or this look finds it.
    IS_WATCHED.swap(false, SeqCst);
    let mut is_any = false;
    slots::each(|slot| is_any |= keeps_memory(slot));
    if is_any {
        IS_WATCHED.store(true, SeqCst);
    }
    is_any.then_some(OFTEN)
}

fn keeps_memory(slot: &Slot) -> bool {
    let stage = &slot.memory.stage;
    match stage.load(SeqCst) {
        NONE => return false,
        WRITTEN => stage.store(SILENT, Relaxed),
        _ => return !give_back(slot),
    }
    true
}

/// Gives the memory of an empty ring back. False if it is in use.
fn give_back(slot: &Slot) -> bool {
    let outgoing = slot.parts().outgoing;
    let Some(held) = lock::try_take(outgoing.sender_lock()) else { return false };
    let received = receiver_lock::try_take_to_send(slot);
    let mut is_done = false;
    if let Some(received) = received {
        let ring = slot.ring(Way::Outgoing, outgoing.capacity());
        is_done = outgoing.backlog().is_none() && ring.is_some() && outgoing.shrink();
        if let Some(ring) = ring.filter(|_| is_done) {
            // SAFETY: the ring is empty, and both locks are held.
            unsafe { memory::give_back(ring.as_ptr().cast_mut().cast(), ring.len()) };
            slot.memory.end();
            slot.wants_room.store(0, Relaxed);
        }
        lock::release(outgoing.receiver_lock(), received);
    }
    lock::release(outgoing.sender_lock(), held);
    is_done
}
