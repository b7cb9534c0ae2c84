// SPDX-License-Identifier: Apache-2.0
//! The last bytes of a sender that was killed: it had taken them back from the ring, and TCP has not
//! delivered them. They are still in the ring's memory, behind TCP's last byte.

use crate::kernel;
use crate::links::slots::{DirectionIndex, Slot, ring_iovecs};
use crate::stream::buffers::{self, Buffers};
use crate::stream::receive_attempt::{ReadPosition, ReceiveAttempt};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use tare_link_segment::Corrupt;
use tare_shm::syscall::Errno;

/// Bytes in the ring, behind `waiting` bytes of TCP's that were not read.
pub struct Undelivered {
    pub from: u64,
    pub length: u64,
    pub waiting: u64,
}

/// Reads such bytes when the kernel reports the end of the stream, or an error; `None` if there are
/// none.
#[cold]
#[inline(never)]
pub fn read(
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    place: &mut ReadPosition,
) -> Result<Option<ReceiveAttempt>, Corrupt> {
    let Some(cut) = at(slot, 0)? else { return Ok(None) };
    let incoming = slot.mapping().incoming;
    Ok(Some(match copy(slot, &cut, into, skipped, flags)? {
        Ok(got) => {
            if flags & libc::MSG_PEEK == 0 {
                incoming.end_read(got as u64);
                place.position = incoming.position();
                slot.received.add(got as u64);
            }
            ReceiveAttempt::Got(got)
        }
        Err(error) => ReceiveAttempt::Failed(error),
    }))
}

/// Such bytes while TCP may have bytes that were not read. Under the receiver's lock.
#[cold]
#[inline(never)]
pub fn behind_tcp(fd: c_int, slot: &Slot) -> Option<Undelivered> {
    if !slot.mapping().incoming.has_backlog() || !kernel::has_ended(fd) {
        return None;
    }
    at(slot, kernel::waiting(fd).ok()?).ok()?
}

/// Only this process has read TCP's bytes, and the end of the stream is the other end's.
fn at(slot: &Slot, waiting: u64) -> Result<Option<Undelivered>, Corrupt> {
    if slot.is_read_shut.load(Relaxed) != 0 || slot.is_given_up.load(Relaxed) != 0 {
        return Ok(None);
    }
    let incoming = slot.mapping().incoming;
    let cut = incoming.undelivered(waiting, incoming.capacity())?;
    Ok(cut.map(|(from, length)| Undelivered { from, length, waiting }))
}

#[inline(never)]
pub fn copy(
    slot: &Slot,
    cut: &Undelivered,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
) -> Result<Result<usize, Errno>, Corrupt> {
    let capacity = slot.mapping().incoming.capacity();
    let length = cut.length.min((into.length() - skipped) as u64);
    if flags & libc::MSG_TRUNC != 0 {
        return Ok(Ok(length as usize));
    }
    let ring = slot.ring(DirectionIndex::Incoming, capacity).ok_or(Corrupt)?;
    let ring = ring_iovecs(ring, capacity, cut.from, length);
    Ok(buffers::write(&ring, &into.part(skipped, length as usize)))
}
