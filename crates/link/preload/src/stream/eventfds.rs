// SPDX-License-Identifier: Apache-2.0
//! The eventfd that wakes the receiver of a link: for threads that sleep, and for epoll sets, which
//! must see by it whether the ring has bytes.

use crate::kernel;
use crate::links::receiver_lock;
use crate::links::slots::Slot;
use crate::stream::downgrade;
use core::sync::atomic::Ordering::Relaxed;
use tare_link_segment::{Corrupt, Source};

/// How the eventfd of a link is kept for sets (`Slot::watch`): always armed if the ring is empty, or
/// while the waiter sleeps.
pub const ARMED: u32 = 1;
pub const BY_WAITER: u32 = 2;

/// Whether sets need the bell at any time.
pub fn is_armed(slot: &Slot) -> bool {
    match slot.watch.load(Relaxed) {
        0 => false,
        BY_WAITER => slot.is_shared(),
        _ => true,
    }
}

/// Before a thread waits for the eventfd: arms the bell. Returns whether there is something to do
/// at once. A thread that never comes to `wakes_up` (it was cancelled) leaves the bell armed.
pub fn falls_asleep(slot: &Slot) -> bool {
    slot.parts().incoming.sleepers().fetch_add(1, Relaxed);
    is_readable(slot) || downgrade::is_due(slot)
}

pub fn wakes_up(slot: &Slot) {
    let fewer = |sleepers: u32| sleepers.checked_sub(1);
    let _ = slot.parts().incoming.sleepers().fetch_update(Relaxed, Relaxed, fewer);
}

/// Whether the eventfd may have a number. What another process did that shares this end is not known.
pub fn has_number(slot: &Slot) -> bool {
    let bell = slot.parts().incoming.bell();
    bell.is_rung() || slot.is_added.load(Relaxed) != 0 || slot.is_shared()
}

/// Whether there is nothing to read: a set then has an armed bell. Other waits arm it themselves.
pub fn is_settled(slot: &Slot) -> Result<bool, Corrupt> {
    if is_armed(slot) { settle(slot) } else { Ok(true) }
}

/// Makes the bell fit the ring, so that sets report what there is: rung while there are bytes, else
/// armed and its eventfd empty. Whether the ring is empty, or TCP's turn it is. Sets that report
/// edges have an armed bell whatever the ring has: the next bytes are an edge.
pub fn settle(slot: &Slot) -> Result<bool, Corrupt> {
    let incoming = slot.parts().incoming;
    let bell = incoming.bell();
    let has_edges = slot.has_edges.load(Relaxed) != 0;
    let mut is_late = false;
    loop {
        let capacity = incoming.capacity();
        // A waiter reports edges by itself, without the eventfd.
        let by_waiter = has_edges && !is_armed(slot);
        let source = incoming.source(capacity)?;
        let is_next = matches!(source, Source::Ring { .. });
        // The ring's bytes are behind those of TCP: their edge may not be reported yet.
        let is_behind = has_edges && matches!(source, Source::Tcp(_)) && incoming.unread() > 0;
        if !by_waiter && (is_next || is_behind) {
            if has_edges {
                // The eventfd keeps its number: an edge that no set has reported yet stays one.
                if is_late {
                    kernel::add(slot.own_bell());
                }
                if is_late || bell.is_rung() {
                    slot.is_added.store(1, Relaxed);
                }
                bell.arm();
            } else if !bell.is_rung() {
                bell.arm();
                if bell.ring() {
                    kernel::add(slot.own_bell());
                }
            }
            return Ok(!is_next);
        }
        let is_added = slot.is_added.swap(0, Relaxed);
        if bell.is_rung() || is_added == 1 {
            // Who rings adds to it at once.
            let mut times = 0;
            while !kernel::clear(slot.own_bell()) && times < 1000 {
                times += 1;
                kernel::yield_now();
            }
        } else if is_added == 2 || slot.is_shared() {
            let _ = kernel::clear(slot.own_bell());
        }
        bell.arm();
        let is_empty = !matches!(incoming.source(capacity)?, Source::Ring { .. });
        if is_empty || by_waiter {
            return Ok(is_empty);
        }
        // Bytes that may not have rung it.
        is_late = true;
    }
}

/// After a set has reported the eventfd: the next bytes ring again.
pub fn settle_again(slot: &Slot) {
    let _ = receiver_lock::while_receiving(slot, || settle(slot));
}

/// After a set got the eventfd.
pub fn settle_for_sets(slot: &Slot) {
    let incoming = slot.parts().incoming;
    let _ = receiver_lock::while_receiving(slot, || {
        // The kernel reports what there is to a set that has changed, also behind TCP's bytes.
        let is_next = settle(slot) == Ok(false);
        let is_behind = slot.has_edges.load(Relaxed) != 0 && incoming.unread() > 0;
        if (is_next || is_behind) && incoming.bell().ring() {
            kernel::add(slot.own_bell());
        }
    });
}

/// Whether the ring has bytes to read; if not, its bell is armed.
pub fn is_readable(slot: &Slot) -> bool {
    let is_empty = receiver_lock::while_receiving(slot, || {
        slot.received.tell();
        settle(slot)
    });
    // A thread that waits with the lock has an armed bell.
    is_empty.map_or_else(|| slot.parts().incoming.has_news(), |is_empty| is_empty != Ok(true))
}

/// Whether a set has reported the eventfd for nothing: it was rung because the other end leaves, or
/// another thread has read the bytes. The bell is armed then.
pub fn is_vain(slot: &Slot) -> bool {
    let is_rung = slot.parts().incoming.bell().is_rung() || slot.is_added.load(Relaxed) != 0;
    if !is_rung || is_readable(slot) {
        return false;
    }
    if downgrade::is_due(slot) {
        downgrade::serve(slot);
    }
    slot.any_descriptor().is_some_and(|fd| kernel::events(fd, libc::POLLIN) == 0)
}

/// Whether the ring has bytes to read.
pub fn has_bytes(slot: &Slot) -> bool {
    let incoming = slot.parts().incoming;
    let followed = incoming.followed();
    // Of the ring, with no change before them: to say so, no lock is needed.
    if !followed.is_multiple_of(2) && incoming.changes_since(followed) == 0 {
        return incoming.unread() > 0;
    }
    let source = receiver_lock::while_receiving(slot, || incoming.source(incoming.capacity()));
    source.is_some_and(|source| !matches!(source, Ok(Source::Empty | Source::Tcp(_))))
}

/// After bytes of the ring were read. Sets must see whether there are more; threads that sleep
/// still need the bell. Where there are neither, the next bytes need not ring it.
pub fn rests(slot: &Slot, seen: u64) {
    let incoming = slot.parts().incoming;
    let bell = incoming.bell();
    if is_armed(slot) {
        let _ = settle(slot);
        // An edge, of bytes that the program does not know of.
        if slot.has_edges.load(Relaxed) != 0 && incoming.head() != seen && bell.ring() {
            kernel::add(slot.own_bell());
        }
    } else if incoming.sleepers().load(Relaxed) == 0 {
        bell.disarm();
    }
}
