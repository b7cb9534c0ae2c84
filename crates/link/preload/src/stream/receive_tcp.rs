// SPDX-License-Identifier: Apache-2.0
//! Receiving what TCP has of a linked connection, and its end.

use crate::links::slots::Slot;
use crate::stream::buffers::Buffers;
use crate::stream::receive_attempt::{ReadPosition, ReceiveAttempt};
use crate::stream::{downgrade, eventfds, undelivered};
use crate::{kernel, state};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use tare_link_segment::{Corrupt, Counter, Reason, Source};
use tare_shm::syscall::Errno;

/// The room that a call had, and what the kernel's returned.
type Read = (usize, Result<usize, Errno>);

/// Reads from TCP what belongs before the next change; `None` if that is reached.
fn read_tcp(
    fd: c_int,
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    place: &mut ReadPosition,
) -> Result<Option<Read>, Corrupt> {
    let incoming = slot.mapping().incoming;
    let capacity = incoming.capacity();
    incoming.begin_read();
    let most = match incoming.source(capacity) {
        Ok(Source::Tcp(_)) if place.is_passed(incoming) => {
            incoming.end_read(0);
            return Ok(None);
        }
        // No byte of the ring is between TCP's.
        Ok(Source::Tcp(_)) if flags & libc::MSG_PEEK != 0 && incoming.unread() == 0 => usize::MAX,
        Ok(Source::Tcp(most)) => usize::try_from(most).unwrap_or(usize::MAX),
        other => {
            incoming.end_read(0);
            return other.map(|_| None);
        }
    };
    let kept = flags & (libc::MSG_PEEK | libc::MSG_TRUNC);
    let rest = into.part(skipped, most);
    let got = kernel::receive(fd, &rest, kept);
    let is_read = flags & libc::MSG_PEEK == 0;
    incoming.end_read(if is_read { got.unwrap_or(0) as u64 } else { 0 });
    place.position = incoming.position();
    Ok(Some((rest.length(), got)))
}

/// Reads from TCP; `None` if the stream has changed.
pub fn from_tcp(
    fd: c_int,
    slot: &Slot,
    into: &Buffers,
    skipped: usize,
    flags: c_int,
    place: &mut ReadPosition,
) -> Result<Option<ReceiveAttempt>, Corrupt> {
    let incoming = slot.mapping().incoming;
    let capacity = incoming.capacity();
    let mut read = || read_tcp(fd, slot, into, skipped, flags, place);
    // A signal handler that reads between the look at the changes and the call would let the call
    // read bytes behind a change.
    let read = if incoming.is_tcp_for_good() { read() } else { downgrade::uninterrupted(read) };
    let Some((room, got)) = read? else { return Ok(None) };
    Ok(Some(match got {
        Ok(0) if room > 0 => {
            // Bytes of the ring may have been published before the end.
            if !matches!(incoming.source(capacity)?, Source::Tcp(_)) {
                return Ok(None);
            }
            match undelivered::read(slot, into, skipped, flags, place)? {
                Some(attempt) => attempt,
                None => end(slot),
            }
        }
        Ok(got) => {
            if flags & libc::MSG_PEEK == 0 {
                state::count(Counter::TcpReceived, got as u64);
            }
            // It was rung for bytes that were taken back from the ring.
            if eventfds::is_armed(slot) && eventfds::has_number(slot) {
                eventfds::settle(slot)?;
            }
            ReceiveAttempt::Got(got)
        }
        Err(Errno(libc::EAGAIN)) => {
            if !matches!(incoming.source(capacity)?, Source::Tcp(_)) || !eventfds::is_settled(slot)?
            {
                return Ok(None);
            }
            ReceiveAttempt::Nothing
        }
        Err(error) => {
            if matches!(incoming.source(capacity)?, Source::Ring { .. }) {
                slot.error.store(error.0, Relaxed);
                return Ok(None);
            }
            match undelivered::read(slot, into, skipped, flags, place)? {
                Some(attempt) => {
                    slot.error.store(error.0, Relaxed);
                    attempt
                }
                None => ReceiveAttempt::Failed(error),
            }
        }
    }))
}

/// The end of the stream, or the error that it ended with.
pub fn end(slot: &Slot) -> ReceiveAttempt {
    slot.sends_tcp.store(Reason::OtherClosed as u32, Relaxed);
    let incoming = slot.mapping().incoming;
    let is_cut = slot.is_read_shut.load(Relaxed) == 0
        && slot.is_given_up.load(Relaxed) != 0
        && incoming.has_backlog();
    match slot.error.swap(0, Relaxed) {
        0 if is_cut => ReceiveAttempt::Failed(Errno(libc::ECONNRESET)),
        0 => ReceiveAttempt::End,
        error => ReceiveAttempt::Failed(Errno(error)),
    }
}
