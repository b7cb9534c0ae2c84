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

/// Whether sets need the doorbell at any time.
pub fn is_armed(slot: &Slot) -> bool {
    match slot.watch.load(Relaxed) {
        0 => false,
        BY_WAITER => slot.is_shared(),
        _ => true,
    }
}

/// Before a thread waits for the eventfd: arms the doorbell. Returns whether there is something to do
/// at once. A thread that never comes to `end_sleep` (it was cancelled) leaves the doorbell armed.
pub fn begin_sleep(slot: &Slot) -> bool {
    slot.mapping().incoming.sleepers().fetch_add(1, Relaxed);
    is_readable(slot) || downgrade::is_due(slot)
}

pub fn end_sleep(slot: &Slot) {
    let fewer = |sleepers: u32| sleepers.checked_sub(1);
    let _ = slot.mapping().incoming.sleepers().fetch_update(Relaxed, Relaxed, fewer);
}

/// Whether the eventfd may have a number. What another process did that shares this end is not known.
pub fn has_number(slot: &Slot) -> bool {
    let doorbell = slot.mapping().incoming.doorbell();
    doorbell.is_rung() || slot.is_added.load(Relaxed) != 0 || slot.is_shared()
}

/// Whether there is nothing to read: a set then has an armed doorbell. Other waits arm it themselves.
pub fn is_settled(slot: &Slot) -> Result<bool, Corrupt> {
    if is_armed(slot) { settle(slot) } else { Ok(true) }
}

/// Makes the doorbell fit the ring, so that sets report what there is: rung while there are bytes, else
/// armed and its eventfd empty. Whether the ring is empty, or TCP's turn it is. Sets that report
/// edges have an armed doorbell whatever the ring has: the next bytes are an edge.
pub fn settle(slot: &Slot) -> Result<bool, Corrupt> {
    let incoming = slot.mapping().incoming;
    let doorbell = incoming.doorbell();
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
                    kernel::add(slot.own_eventfd());
                }
                if is_late || doorbell.is_rung() {
                    slot.is_added.store(1, Relaxed);
                }
                doorbell.arm();
            } else if !doorbell.is_rung() {
                doorbell.arm();
                if doorbell.ring() {
                    kernel::add(slot.own_eventfd());
                }
            }
            return Ok(!is_next);
        }
        let is_added = slot.is_added.swap(0, Relaxed);
        if doorbell.is_rung() || is_added == 1 {
            // Who rings adds to it at once.
            let mut times = 0;
            while !kernel::clear(slot.own_eventfd()) && times < 1000 {
                times += 1;
                kernel::yield_now();
            }
        } else if is_added == 2 || slot.is_shared() {
            let _ = kernel::clear(slot.own_eventfd());
        }
        doorbell.arm();
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
    let incoming = slot.mapping().incoming;
    let _ = receiver_lock::while_receiving(slot, || {
        // The kernel reports what there is to a set that has changed, also behind TCP's bytes.
        let is_next = settle(slot) == Ok(false);
        let is_behind = slot.has_edges.load(Relaxed) != 0 && incoming.unread() > 0;
        if (is_next || is_behind) && incoming.doorbell().ring() {
            kernel::add(slot.own_eventfd());
        }
    });
}

/// Whether the ring has bytes to read; if not, its doorbell is armed.
pub fn is_readable(slot: &Slot) -> bool {
    let is_empty = receiver_lock::while_receiving(slot, || {
        slot.received.flush();
        settle(slot)
    });
    // A thread that waits with the lock has an armed doorbell.
    is_empty.map_or_else(|| slot.mapping().incoming.has_updates(), |is_empty| is_empty != Ok(true))
}

/// Whether a set has reported the eventfd for nothing: it was rung because the other end leaves, or
/// another thread has read the bytes. The doorbell is armed then.
pub fn is_spurious(slot: &Slot) -> bool {
    let is_rung = slot.mapping().incoming.doorbell().is_rung() || slot.is_added.load(Relaxed) != 0;
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
    let incoming = slot.mapping().incoming;
    let followed = incoming.followed();
    // Of the ring, with no change before them: to say so, no lock is needed.
    if !followed.is_multiple_of(2) && incoming.changes_since(followed) == 0 {
        return incoming.unread() > 0;
    }
    let source = receiver_lock::while_receiving(slot, || incoming.source(incoming.capacity()));
    source.is_some_and(|source| !matches!(source, Ok(Source::Empty | Source::Tcp(_))))
}

/// After bytes of the ring were read. Sets must see whether there are more; threads that sleep
/// still need the doorbell. Where there are neither, the next bytes need not ring it.
pub fn after_read(slot: &Slot, seen: u64) {
    let incoming = slot.mapping().incoming;
    let doorbell = incoming.doorbell();
    if is_armed(slot) {
        let _ = settle(slot);
        // An edge, of bytes that the program does not know of.
        if slot.has_edges.load(Relaxed) != 0 && incoming.head() != seen && doorbell.ring() {
            kernel::add(slot.own_eventfd());
        }
    } else if incoming.sleepers().load(Relaxed) == 0 {
        doorbell.disarm();
    }
}
