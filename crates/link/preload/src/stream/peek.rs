// SPDX-License-Identifier: Apache-2.0
//! Peeking at bytes behind a change between TCP and the ring.

use crate::kernel;
use crate::links::receiver_lock;
use crate::links::slots::{DirectionIndex, Slot, ring_iovecs};
use crate::stream::buffers::{self, Buffers};
use crate::stream::undelivered;
use core::ffi::c_int;
use tare_link_segment::Source;

/// Continues a peek that has `skipped` bytes and came to a change between TCP and ring. Adds the bytes
/// of the ring or of TCP, and TCP's again if all of the ring's fit. Returns how many were added.
pub fn peek(slot: &Slot, into: &Buffers, skipped: usize, flags: c_int) -> usize {
    let peeks = || locked(slot, into, skipped, flags);
    receiver_lock::while_receiving(slot, peeks).unwrap_or(0)
}

fn locked(slot: &Slot, into: &Buffers, skipped: usize, flags: c_int) -> usize {
    let incoming = slot.mapping().incoming;
    let changes = incoming.changes_since(incoming.followed());
    match incoming.source(incoming.capacity()) {
        Ok(Source::Tcp(before)) if before == skipped as u64 => {
            let ring = in_ring(slot, into, skipped, flags);
            let is_all = changes == 2 && ring as u64 == incoming.unread();
            ring + if is_all { in_tcp(slot, into, skipped, skipped + ring, flags) } else { 0 }
        }
        Ok(Source::Ring { length, .. }) if changes == 1 && length == skipped as u64 => {
            in_tcp(slot, into, 0, skipped, flags)
        }
        Ok(Source::Tcp(_)) => behind_tcp(slot, into, skipped, flags),
        _ => 0,
    }
}

fn behind_tcp(slot: &Slot, into: &Buffers, skipped: usize, flags: c_int) -> usize {
    let cut = slot.any_descriptor().and_then(|fd| undelivered::behind_tcp(fd, slot));
    let cut = cut.filter(|cut| cut.waiting == skipped as u64);
    let copied = cut.map(|cut| undelivered::copy(slot, &cut, into, skipped, flags));
    copied.and_then(Result::ok).and_then(Result::ok).unwrap_or(0)
}

fn in_ring(slot: &Slot, into: &Buffers, skipped: usize, flags: c_int) -> usize {
    let incoming = slot.mapping().incoming;
    let capacity = incoming.capacity();
    let length = incoming.unread().min((into.length() - skipped) as u64);
    let ring = slot.ring(DirectionIndex::Incoming, capacity).filter(|_| length <= capacity);
    match ring {
        Some(_) if flags & libc::MSG_TRUNC != 0 => length as usize,
        Some(ring) => {
            let ring = ring_iovecs(ring, capacity, incoming.tail(), length);
            buffers::write(&ring, &into.part(skipped, length as usize)).unwrap_or(0)
        }
        None => 0,
    }
}

/// TCP's bytes behind its first `before`, which begin the buffers, for those behind `skipped`.
fn in_tcp(slot: &Slot, into: &Buffers, before: usize, skipped: usize, flags: c_int) -> usize {
    let kept = flags & (libc::MSG_PEEK | libc::MSG_TRUNC);
    let fd = slot.any_descriptor().unwrap_or(-1);
    let Some(mapping) = into.part(0, before).with(&into.part(skipped, usize::MAX)) else {
        return 0;
    };
    kernel::receive(fd, &mapping, kept).map_or(0, |got| got.saturating_sub(before))
}
